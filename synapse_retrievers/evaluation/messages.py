"""What a commit message says as a question, and which commits say nothing; pure text rules."""

import re

_TRAILER = re.compile(
    r"^[ \t]*(?:(?:[a-z]+(?:-[a-z]+)*-by|change-id|pr-url|reviewed-on|git-svn-id|cc)[ \t]*:.*"
    r"|\(cherry picked from commit [0-9a-f]+\))[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
# The top-level domain is letters: `deps: qs@6.5.2` names a package, not a person.
_ADDRESS = re.compile(r"<?[\w.+-]+@(?:[\w-]+\.)+[a-z]{2,}>?", re.IGNORECASE)
_URL = re.compile(r"<?\b[a-z][a-z0-9+.-]*://[^\s<>]+>?", re.IGNORECASE)
_BOT = re.compile(
    r"\[bot\]|^(?:dependabot|renovate|greenkeeper|pre-commit-ci|github-actions?|snyk-bot|pyup-bot"
    r"|imgbot|weblate|allcontributors|semantic-release-bot)\b",
    re.IGNORECASE,
)
_PREFIX = re.compile(r"^[\w-]+(?:\([^)]*\))?!?:\s*")
_REFERENCE = re.compile(r"\s*\(#\d+\)$")
_VERSION = r"v?\d+(?:\.\d+)*[\w.+-]*"
_BUMP = re.compile(
    # Bump tox from 3.24.1 to 3.24.3; bump the actions group with 8 updates.
    rf"(?:bump|upgrade|update)\b.*(?:\bfrom\s+{_VERSION}.*\bto\s+{_VERSION}|\bwith \d+ updates?\b)"
    # Bump version to 1.2; bump to 4.2-dev; version bump v0.4.1.
    r"|bump(?:ed|ing)?\s+(?:the\s+)?(?:to\b|versions?\b|v?\d)|version\s+bump\b"
)
_RELEASE = re.compile(
    r"(?:(?:prepar(?:e|ing)|start|next|tag|cut|for|the|a|new|bugfix|releas(?:e[ds]?|ing)|versions?):?\s+)*"
    rf"{_VERSION}(?:\s+(?:bugfix\s+)?release)?\.?"
)
"""Nothing but "1.2.0", "Release 0.6.1", "start version 2.2.1", "Preparing for a 0.5.1 release"."""


def question(message: str) -> str:
    r"""The message without trailers, addresses and empty lines; "" if nothing is left.

    >>> question("Fix the parser\n\nSee https://example.org/1\nSigned-off-by: A <a@example.org>")
    'Fix the parser\nSee'
    """
    text = _TRAILER.sub("", message)
    text = _ADDRESS.sub("", _URL.sub("", text))
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def is_bot(author: str) -> bool:
    """Whether `name <address>` is a machine that keeps dependencies or formats.

    >>> is_bot("dependabot[bot] <1+dependabot[bot]@example.org>"), is_bot("Abbott <a@example.org>")
    (True, False)
    """
    return bool(_BOT.search(author))


def is_version_bump(subject: str) -> bool:
    """Whether the first line only says that a version number changed.

    >>> [is_version_bump(line) for line in ("Bump version to 1.2", "v4.17.1", "Bump the log level")]
    [True, True, False]
    """
    line = _REFERENCE.sub("", _PREFIX.sub("", subject.strip().lower()))
    return bool(_BUMP.match(line) or _RELEASE.fullmatch(line))
