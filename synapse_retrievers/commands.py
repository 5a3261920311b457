"""What `synapse` can be asked to do: arguments in, one report or one line of error out."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from synapse_retrievers import report
from synapse_retrievers.errors import SynapseError
from synapse_retrievers.synapse import Synapse

if TYPE_CHECKING:
    from synapse_retrievers.demo import Progress as Tell

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


class NoStoreError(SynapseError):
    """There is no store at the path."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} {reason}: name a store, for instance one that `synapse demo --store` has kept"
        )


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
