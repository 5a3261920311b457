"""The command `synapse`."""

import logging
import sys

from synapse_retrievers.errors import MissingExtraError


def main() -> None:
    """Run the command line; without its libraries, say in one line how to get them."""
    try:
        import rich  # noqa: F401 - are they there at all?
        import typer  # noqa: F401
    except ModuleNotFoundError:
        sys.stderr.write(f"synapse: {MissingExtraError('the command line', 'cli')}\n")
        sys.exit(2)
    from synapse_retrievers.commands import app

    # Before a library that is imported later asks for every line of its own (wordllama).
    logging.basicConfig(level=logging.WARNING)
    app(prog_name="synapse")
