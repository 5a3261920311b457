"""The distributions: one version, what they declare, what they ship."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib import metadata
from itertools import chain
from pathlib import Path

import pytest

import synapse_retrievers

ROOT = Path(__file__).parents[1]
PROJECTS = {
    path.parent: tomllib.loads(path.read_text(encoding="utf-8"))
    for path in (
        ROOT / "pyproject.toml",
        *sorted(ROOT.glob("integrations/*/pyproject.toml")),
    )
}
NAMES = {
    "synapse-retrievers": "synapse_retrievers/",
    "langchain-synapse-retrievers": "langchain_synapse_retrievers/",
    "llama-index-retrievers-synapse": "llama_index/retrievers/synapse/",
}
projects = pytest.mark.parametrize(
    ("folder", "project"), PROJECTS.items(), ids=[p["project"]["name"] for p in PROJECTS.values()]
)


@projects
def test_the_version_stands_in_the_core_alone(folder, project):
    source = folder / project["tool"]["hatch"]["version"]["path"]
    assert source.resolve() == ROOT / "synapse_retrievers/__init__.py"
    try:
        assert metadata.version(project["project"]["name"]) == synapse_retrievers.__version__
    except metadata.PackageNotFoundError:
        pytest.skip("not installed here")


def test_each_project_asks_for_the_release_that_it_belongs_to():
    major, minor, _ = synapse_retrievers.__version__.split(".")
    root, *adapters = PROJECTS.values()
    for adapter in adapters:
        window = f"synapse-retrievers>={major}.{minor},<{major}.{int(minor) + 1}"
        assert window in adapter["project"]["dependencies"]
    pinned = [r for r in root["project"]["optional-dependencies"]["demo"] if "==" in r]
    assert pinned == [f"langchain-synapse-retrievers=={synapse_retrievers.__version__}"]


def test_the_core_needs_numpy_alone():
    assert re.findall(r"^[\w-]+", *PROJECTS[ROOT]["project"]["dependencies"]) == ["numpy"]


@projects
def test_every_requirement_has_a_floor_and_a_ceiling(folder, project):
    extras = project["project"].get("optional-dependencies", {}).values()
    for requirement in [*project["project"]["dependencies"], *chain(*extras)]:
        own = re.match(r"synapse-retrievers\[\w+\]$", requirement)
        assert own or "==" in requirement or re.search(r">=[\d.]+,<[\d.]+$", requirement), (
            requirement
        )


@projects
def test_wheel_and_sdist_hold_our_files_alone(folder, project, tmp_path):
    pytest.importorskip("hatchling")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run(build, cwd=folder, check=True, capture_output=True)
    package = NAMES[project["project"]["name"]]
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert f"{package}py.typed" in names
    assert not [n for n in names if not n.startswith(package) and ".dist-info/" not in n]
    assert [n for n in names if n.endswith("licenses/LICENSE")]
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        inside = [n.partition("/")[2] for n in archive.getnames()]
    extra = {"CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml", ".gitignore"}
    assert not [n for n in inside if not n.startswith(package) and n not in extra]


def test_no_distribution_owns_a_namespace_that_belongs_to_another():
    for folder in ("llama_index", "llama_index/retrievers"):
        assert not (ROOT / "integrations/llama-index" / folder / "__init__.py").exists()
