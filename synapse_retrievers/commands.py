"""What `synapse` can be asked to do: arguments in, one report or one line of error out."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from synapse_retrievers import report
from synapse_retrievers.errors import MissingExtraError, SynapseError
from synapse_retrievers.synapse import Synapse

if TYPE_CHECKING:
    from synapse_retrievers.evaluation.evaluate import Evaluation
    from synapse_retrievers.evaluation.sources import Progress as Tell

_FAILED = 2

app = typer.Typer(
    help="A memory of use around a retriever: try it on a repository, look into a store.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Store = Annotated[
    str,
    typer.Argument(help="The store: a file or a URL, for instance synapse.db.", metavar="STORE"),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


class Framework(StrEnum):
    """Whose retrievers the demo asks."""

    LANGCHAIN = "langchain"
    LLAMA_INDEX = "llama-index"


class Base(StrEnum):
    """Which plain retriever is wrapped."""

    VECTOR = "vector"
    BM25 = "bm25"
    HYBRID = "hybrid"


class Unit(StrEnum):
    """What a place of a result is."""

    CHUNKS = "chunks"
    FILES = "files"


class Evidence(StrEnum):
    """What the memory learns from."""

    ALL = "all"
    SHOWN = "shown"
    NOISY = "noisy"
    GARBAGE = "garbage"
    NONE = "none"
    MIDRUN = "midrun"


class NoStoreError(SynapseError):
    """There is no store at the path."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} {reason}: name a store, for instance one that `synapse demo --store` has kept"
        )


class NothingGivenError(SynapseError):
    """There is no log to replay."""

    def __init__(self) -> None:
        super().__init__("there is nothing to replay: give --git REPO or --runs FILE")


class PageError(SynapseError):
    """The page cannot be written."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} cannot be written ({reason}): name another file with --html")


@app.command(epilog="Example: synapse demo ~/src/flask --limit 1000 --store flask.db")
def demo(  # noqa: PLR0913 - one option a setting
    repository: Annotated[
        Path, typer.Argument(metavar="REPO", help="A git repository, for instance ~/src/flask.")
    ] = Path(),
    *,
    limit: Annotated[
        int, typer.Option(min=1, help="Only the newest usable commits, for instance 1000.")
    ] = 3_000,
    k: Annotated[
        int, typer.Option("--k", "-k", min=1, max=100, help="Results a query, for instance 8.")
    ] = 8,
    store: Annotated[
        Path | None, typer.Option(help="Keep what was learned in this file, for instance flask.db.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Keep the Chroma index in this folder, for instance index.")
    ] = None,
    framework: Annotated[
        Framework, typer.Option(help="Whose retrievers are asked, for instance llama-index.")
    ] = Framework.LANGCHAIN,
    as_json: Json = False,
) -> None:
    """Replay a git history: does learning from use find more of the files that were touched?"""
    with _one_line_errors(), _progress(quiet=as_json) as tell:
        # It takes seconds to import, and needs more than this module does.
        from synapse_retrievers.demo import run_demo  # noqa: PLC0415

        result = run_demo(
            repository,
            limit=limit,
            k=k,
            store=store,
            folder=folder,
            framework=framework.value,
            progress=tell,
        )
    if as_json:
        _print_json(report.demo_json(result))
    else:
        Console(highlight=False).print(report.demo_report(result))


@app.command(name="eval", epilog="Example: synapse eval --git . --html report.html")
def evaluate(  # noqa: PLR0913 - one option a setting
    *,
    git: Annotated[
        list[Path] | None,
        typer.Option(metavar="REPO", help="A git repository, for instance . (may be repeated)."),
    ] = None,
    runs: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="JSON Lines of runs {t, query, used, shown}, for instance runs.jsonl, with "
            "vectors in runs.npz beside it or --documents or `shown` (may be repeated).",
        ),
    ] = None,
    documents: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON Lines of {id, text} that the runs search."),
    ] = None,
    base: Annotated[Base, typer.Option(help="The retriever that is wrapped.")] = Base.VECTOR,
    unit: Annotated[Unit, typer.Option(help="What a place holds.")] = Unit.CHUNKS,
    learn_from: Annotated[
        Evidence, typer.Option(help="What is learned from, for instance shown.")
    ] = Evidence.ALL,
    k: Annotated[
        int, typer.Option("--k", "-k", min=1, max=100, help="Places of a result, for instance 8.")
    ] = 8,
    limit: Annotated[
        int, typer.Option(min=1, help="Only the newest usable commits, for instance 1000.")
    ] = 3_000,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with pictures, for instance report.html.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Does it pay? Replay a log of use: each question is asked before it is taught."""
    with _one_line_errors(), _progress(quiet=as_json) as tell:
        try:
            from synapse_retrievers import eval_report  # noqa: PLC0415 - needs the extra
            from synapse_retrievers.evaluation import evaluate, sources  # noqa: PLC0415
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "synapse_retrievers":
                raise
            raise MissingExtraError("synapse eval", "eval") from error

        found = [sources.from_git(path, limit, tell) for path in git or []]
        found += [sources.from_runs(path, documents, tell) for path in runs or []]
        if not found:
            raise NothingGivenError
        results = [
            evaluate.evaluate(
                sources.as_log(
                    *(one, [other for other in found if other is not one]),
                    base=base.value,
                    unit=unit.value,
                    k=k,
                ),
                mode=learn_from.value,
                tell=tell,
            )
            for one in found
        ]
        if html is not None:
            _write_page(html, results)
    if as_json:
        _print_json(eval_report.eval_json(results))
    else:
        Console(highlight=False).print(eval_report.eval_report(results))


@app.command(epilog="Example: synapse stats synapse.db")
def stats(store: Store, *, as_json: Json = False) -> None:
    """What a store holds."""
    with _one_line_errors(), _opened(store) as synapse:
        found = synapse.stats()
    if as_json:
        _print_json(report.plain(found))
    else:
        Console(highlight=False).print(report.stats_report(found))


@app.command(epilog='Example: synapse explain synapse.db "parse the config file"')
def explain(
    store: Store,
    query: Annotated[str, typer.Argument(help='For instance "parse the config file".')],
    *,
    namespace: Annotated[
        str, typer.Option(help="Whose memory answers, for instance shared.")
    ] = "personal",
    as_json: Json = False,
) -> None:
    """What a store would bring in for a query, and from which past use."""
    with _one_line_errors(), _opened(store, namespace) as synapse:
        trace = synapse.explain(query)
    if as_json:
        _print_json(report.plain(trace))
    else:
        Console(highlight=False).print(report.trace_report(trace))


def _write_page(path: Path, results: "Sequence[Evaluation]") -> None:
    try:
        from synapse_retrievers.evaluation.page import page  # noqa: PLC0415 - needs the extra
    except ModuleNotFoundError as error:
        raise MissingExtraError("--html", "eval") from error
    try:
        path.write_text(page(results), encoding="utf-8")
    except OSError as error:
        raise PageError(path, error.strerror or str(error)) from error


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except SynapseError as error:
        typer.echo("synapse: " + " ".join(str(error).split()), err=True)
        raise typer.Exit(_FAILED) from error


@contextmanager
def _progress(*, quiet: bool) -> Iterator["Tell"]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    disable = quiet or not sys.stderr.isatty()
    with Progress(*columns, console=console, transient=True, disable=disable) as bars:
        tasks: dict[str, TaskID] = {}

        def tell(stage: str, done: int, total: int | None) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield tell


@contextmanager
def _opened(store: str, namespace: str = "personal") -> Iterator[Synapse]:
    # Opening would make the file that is not there.
    path = Path(store.removeprefix("sqlite:///")).expanduser()
    if "://" not in store or store.startswith("sqlite:///"):
        if not path.exists():
            raise NoStoreError(path, "does not exist")
        if not path.is_file():
            raise NoStoreError(path, "is no file")
    synapse = Synapse(store, namespace=namespace)
    try:
        yield synapse
    finally:
        synapse.close()


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, allow_nan=False, ensure_ascii=False))
