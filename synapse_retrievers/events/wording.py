"""Words that prove nothing: function words, and what a refusal is made of."""

# ruff: noqa: RUF001, SIM905 - lists of words in many scripts

import re

from synapse_retrievers.tokens import words

_STOP = frozenset(
    # English, German, French, Spanish, Portuguese, Italian, Russian, Arabic; then code
    """
    a an and any are as at be been but by can could did do does don for from had has have he her
    his how i if in into is it its ll may more most must no not of on or our re s she should so
    some such t than that the their them then there these they this those to too us ve was we were
    what when where which while who why will with would you your also each other only used using
    aber als am auch auf aus bei bis das dass dem den der des die durch ein eine einem einen einer
    es für hat ich im ist kann man mit nach nicht noch nur oder sich sie sind über um und vom von
    vor war wenn werden wie wird zu zum zur au aux avec ce cette ces dans de du elle en est et il
    ils je la le les leur mais ne nous on ont ou où par pas plus pour que qui sa se ses son sont
    sur un une vous al como con cual del donde el ella esta este está lo los las más muy o para
    pero por puede ser si sin sobre son su sus también tiene un una y ya com da das do dos e ela
    ele em não na nas no nos ao os pela pelo são sua uma che di da dal della delle gli ha nel non
    più sono una и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по
    ее мне было вот от о из ему для при или это этот если их мы есть до чтобы быть который
    في من على إلى عن أن إن هذا هذه ما لا مع أو ثم كان التي الذي هو هي كل قد
    self def return none null true false import class function const let var int str
    """.split()
)
_FUNCTION_CJK = frozenset(
    "的了是在和与及或也就都而这那有我你他它们不为以于之其被把对从到可能会要中上下个一些"
)
_PURE_KANA = re.compile("[\u3041-\u309f]+").fullmatch

# "The context does not mention ..." repeats the question or the context and uses nothing.
_GIVEN = frozenset(
    """context document documents source sources passage passages excerpt excerpts text texts
    information provided kontext dokument dokumente dokumenten contexte documents contexto documento
    documentos контекст контексте документ документе السياق المستند 上下 文档 资料 文中""".split()
)
_NOT = frozenset(
    """not t no nor cannot unable nicht kein keine keinen pas aucune aucun não ningún ninguna
    не нет لا لم 没有 未提 并未""".split()
)
_SAY = frozenset(
    """mention mentions mentioned specify specified contain contains include describe described
    discuss state stated say cover find found indicate answer information detail details erwähnt
    enthält angaben informationen mentionne précise contient menciona contiene contém упоминается
    упомянуто содержит говорится يذكر تذكر يحتوي 提到 提及 说明 包含""".split()
)
_CLAUSE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+|,? (?:but|however|aber|mais|pero|но) ")


def has_content(word: str) -> bool:
    """Whether the word (of `tokens.words`) says something by itself."""
    if len(word) == 1 or word in _STOP:
        return False
    return word.isascii() or not (_PURE_KANA(word) or _FUNCTION_CJK.issuperset(word))


def without_refusals(answer: str) -> str:
    """The answer without its clauses that say what the context lacks.

    >>> without_refusals("The context does not mention Redis. Keys live one hour.")
    'Keys live one hour.'
    """
    if not _is_refusal(answer):
        return answer
    return "\n".join(clause for clause in _CLAUSE.split(answer) if not _is_refusal(clause))


def _is_refusal(clause: str) -> bool:
    said = words(clause)
    return not (_GIVEN.isdisjoint(said) or _NOT.isdisjoint(said)) and any(
        word in _NOT and not _SAY.isdisjoint(said[place + 1 : place + 5])
        for place, word in enumerate(said)
    )
