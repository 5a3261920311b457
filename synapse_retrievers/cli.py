"""The command `synapse`."""

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

    app(prog_name="synapse")
