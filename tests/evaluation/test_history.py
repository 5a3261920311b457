"""Real repositories, made from a plan, read as a log of use."""

import subprocess

import pytest

from synapse_retrievers.errors import SynapseError
from synapse_retrievers.evaluation import repository as repository_module
from synapse_retrievers.evaluation.changes import Change, decoded, names_at
from synapse_retrievers.evaluation.datasets import (
    START,
    PlannedCommit,
    generate_repository,
    write_repository,
)
from synapse_retrievers.evaluation.history import read_history
from synapse_retrievers.evaluation.repository import (
    GitMissingError,
    NoRepositoryError,
    NoUsableHistoryError,
    Repository,
    ShallowCloneError,
    UnreadableHistoryError,
)

BODY = b"".join(b"line %d of a file that is long enough to be known again\n" % n for n in range(30))


def plan(*commits):
    """Commits a minute apart; each is (message, files)."""
    return [
        PlannedCommit(message, files, START + 60 * place)
        for place, (message, files) in enumerate(commits)
    ]


def runs(folder, **options):
    history = read_history(folder, **options)
    return history.runs_at(len(history.commits) - 1, ())


def git(folder, *arguments):
    command = ["git", "-C", str(folder), *arguments]
    subprocess.run(command, check=True, capture_output=True)


def test_one_commit_is_one_run_oldest_first(tmp_path):
    folder = write_repository(
        tmp_path / "r",
        plan(
            (
                "Add the parser\n\nSigned-off-by: A <a@example.org>",
                {"a.py": b"1\n", "b.py": b"1\n"},
            ),
            ("Fix it", {"b.py": b"2\n"}),
        ),
    )
    first, second = runs(folder)
    assert (first.t, first.query, first.used) == (START, "Add the parser", ("a.py", "b.py"))
    assert (second.t, second.query, second.used) == (START + 60, "Fix it", ("b.py",))


def test_what_says_nothing_is_no_run(tmp_path):
    many = {f"{n}.py": b"x\n" for n in range(16)}
    commits = [
        PlannedCommit("Add a file", {"a.py": b"1\n"}),
        PlannedCommit("Bump it", {"a.py": b"2\n"}, author="dependabot[bot] <d@example.org>"),
        PlannedCommit("Release 1.0", {"a.py": b"3\n"}),
        PlannedCommit("Reformat all", many),
        PlannedCommit("Nothing at all"),
        PlannedCommit("Signed-off-by: A <a@example.org>", {"a.py": b"4\n"}),
        PlannedCommit("Add a picture", {"a.png": b"\x89PNG\0\0"}),
        PlannedCommit("Add fifteen", dict(list(many.items())[:15]) | {"0.py": b"y\n"}),
    ]
    commits[-1] = PlannedCommit("Change fifteen", {f"{n}.py": b"y\n" for n in range(15)})
    folder = write_repository(tmp_path / "r", commits)
    assert [run.query for run in runs(folder)] == ["Add a file", "Change fifteen"]


def test_links_submodules_and_binary_files_are_not_used_but_deleted_files_are(tmp_path):
    folder = write_repository(
        tmp_path / "r",
        [
            PlannedCommit("Add two files", {"a.py": BODY, "b.bin": b"\0\1"}, START),
            PlannedCommit("Link a to b", {"link": b"a.py"}, START + 1, mode="120000"),
            PlannedCommit("Add a submodule", {"sub": b"1" * 40}, START + 2, mode="160000"),
            PlannedCommit("Delete the first file", {"a.py": None, "b.bin": b"\0\2"}, START + 3),
        ],
    )
    assert [run.used for run in runs(folder)] == [("a.py",), ("a.py",)]


@pytest.mark.parametrize(
    "name",
    [
        "with space.py",
        " lead and trail ",
        'quo"te.py',
        "tab\there.py",
        "new\nline.py",
        ":100644 100644 a b M",
        "-",
        "1\t1\tx.py",
        "b\\s.py",
        "Ünïcode/漢字.md",
        "a" * 40,
    ],
)
def test_odd_names_are_read_as_they_are(tmp_path, name):
    folder = write_repository(
        tmp_path / "r",
        plan(("Add it", {name: b"1\n", "z.py": b"1\n"}), ("Change it", {name: b"2\n"})),
    )
    assert [set(run.used) for run in runs(folder)] == [{name, "z.py"}, {name}]


def test_a_name_that_is_no_utf8_has_one_readable_spelling():
    assert decoded(b"\xff\xfe.py") == "\\xff\\xfe.py"


def test_a_renamed_file_is_credited_under_its_name_at_the_split(tmp_path):
    folder = write_repository(
        tmp_path / "r",
        plan(
            ("Write the file", {"old.py": BODY}),
            ("Move it once", {"old.py": None, "mid.py": BODY}),
            ("Change it there", {"mid.py": BODY + b"more\n"}),
            ("Move it again", {"mid.py": None, "new.py": BODY + b"more\n"}),
            ("Put another file in its place", {"old.py": b"short\n"}),
        ),
    )
    history = read_history(folder)
    assert [run.used for run in history.runs_at(2, {"mid.py"})] == [
        ("mid.py",),
        ("mid.py",),
        ("mid.py",),
        ("mid.py",),
        ("mid.py",),
    ]
    assert [run.used for run in history.runs_at(4, {"new.py", "old.py"})] == [
        ("new.py",),
        ("new.py",),
        ("new.py",),
        ("new.py",),
        ("old.py",),
    ]


def test_a_sweep_that_moves_a_folder_still_tells_the_new_names(tmp_path):
    before = {f"lib/{n}.py": BODY + b"%d\n" % n for n in range(20)}
    moved = {f"src/{n}.py": BODY + b"%d\n" % n for n in range(20)}
    folder = write_repository(
        tmp_path / "r",
        plan(
            *(
                (f"Add file {n} to the library", {f"lib/{n}.py": before[f"lib/{n}.py"]})
                for n in range(20)
            ),
            ("Move the library", dict.fromkeys(before) | moved),
        ),
    )
    found = runs(folder)
    assert [run.used for run in found] == [(f"src/{n}.py",) for n in range(20)]


def test_two_files_that_change_places_keep_apart():
    swap = Change(text=("a", "b"), renamed=(("a", "b"), ("b", "a")))
    touch = Change(text=("a",))
    assert names_at(1, [touch, swap], there="ab") == [("b",), ("a", "b")]
    assert names_at(0, [touch, swap, touch], there="ab") == [("a",), ("b", "a"), ("b",)]


def test_only_the_newest_usable_commits_are_read(tmp_path):
    folder = generate_repository(tmp_path / "r", commits=30)
    assert [run.t for run in runs(folder, limit=5)] == [run.t for run in runs(folder)][-5:]
    assert len(read_history(folder, limit=100).usable) == 30


def test_a_merge_is_no_run_and_the_tree_is_that_of_the_main_line(tmp_path):
    folder = tmp_path / "r"
    write_repository(folder, plan(("Start the work", {"a.py": BODY}), ("Go on", {"a.py": b"2\n"})))
    work = tmp_path / "w"
    git(tmp_path, "clone", "-q", str(folder), str(work))
    for setting in ("user.name=A", "user.email=a@example.org", "commit.gpgsign=false"):
        git(work, "config", *setting.split("="))
    git(work, "checkout", "-q", "-b", "side", "HEAD~1")
    (work / "side.py").write_text("side\n")
    git(work, "add", ".")
    git(work, "commit", "-q", "-m", "Add a side file")
    git(work, "checkout", "-q", "main")
    git(work, "merge", "-q", "--no-ff", "-m", "Merge the side branch", "side")
    history = read_history(work)
    assert [commit.query for commit in history.commits] == [
        "Start the work",
        "Go on",
        "Add a side file",
    ]
    assert history.repository.name == "w"
    assert history.tree_at(1) == history.commits[1].sha


def test_a_clock_that_was_ahead_moves_only_its_own_commit(tmp_path):
    commits = [
        PlannedCommit("Made in the year 2100", {"a.py": b"1\n"}, 4_102_444_800),
        PlannedCommit("Made today", {"a.py": b"2\n"}, START),
    ]
    folder = write_repository(tmp_path / "r", commits)
    history = read_history(folder)
    assert [commit.t for commit in history.commits] == [START, 4_102_444_800]
    assert history.tree_at(0)


def test_a_folder_inside_and_a_bare_repository_are_read_whole(tmp_path):
    folder = generate_repository(tmp_path / "bare.git", commits=12)
    git(tmp_path, "clone", "-q", str(folder), str(tmp_path / "work"))
    expected = runs(folder)
    assert runs(tmp_path / "work" / "src") == expected
    assert Repository.open(tmp_path / "work" / "src").name == "work"
    assert Repository.open(folder).name == "bare.git"


def test_what_the_user_set_for_git_changes_nothing(tmp_path, monkeypatch):
    folder = generate_repository(tmp_path / "r", commits=12)
    expected = runs(folder)
    for setting, value in {
        "core.quotePath": "true",
        "diff.renames": "false",
        "diff.noprefix": "true",
        "diff.relative": "true",
        "log.showSignature": "true",
        "color.ui": "always",
        "i18n.logOutputEncoding": "latin1",
        "diff.external": "false",
    }.items():
        git(folder, "config", setting, value)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert runs(folder) == expected


def test_the_same_seed_gives_the_same_repository(tmp_path):
    heads = {
        read_history(generate_repository(tmp_path / str(n), commits=8, seed=seed)).commits[-1].sha
        for n, seed in enumerate((1, 1))
    }
    assert len(heads) == 1


def refusal(call):
    with pytest.raises(SynapseError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return caught.value


def test_each_thing_that_may_be_wrong_is_said_in_one_line_with_what_to_do(tmp_path, monkeypatch):
    missing = refusal(lambda: read_history(tmp_path / "nowhere"))
    assert isinstance(missing, NoRepositoryError)
    assert "does not exist" in str(missing)

    (tmp_path / "file").write_text("x")
    assert "is no folder" in str(refusal(lambda: read_history(tmp_path / "file")))

    (tmp_path / "plain").mkdir()
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    plain = refusal(lambda: read_history(tmp_path / "plain"))
    assert isinstance(plain, NoRepositoryError)
    assert "is no git repository" in str(plain)

    empty = write_repository(tmp_path / "empty", [])
    assert isinstance(refusal(lambda: read_history(empty)), NoUsableHistoryError)

    bumps = write_repository(
        tmp_path / "bumps", plan(("1.0", {"a": b"1\n"}), ("1.1", {"a": b"2\n"}))
    )
    found = refusal(lambda: read_history(bumps))
    assert isinstance(found, NoUsableHistoryError)
    assert "2 commits" in str(found)


def test_a_shallow_clone_is_refused(tmp_path):
    folder = generate_repository(tmp_path / "r", commits=8)
    git(tmp_path, "clone", "-q", "--depth", "1", folder.as_uri(), str(tmp_path / "shallow"))
    found = refusal(lambda: read_history(tmp_path / "shallow"))
    assert isinstance(found, ShallowCloneError)
    assert "--unshallow" in str(found)


def test_a_damaged_repository_is_said_in_gits_words(tmp_path):
    folder = generate_repository(tmp_path / "r", commits=8)
    sha = read_history(folder).commits[3].sha
    (folder / "objects" / sha[:2] / sha[2:]).unlink()
    assert isinstance(refusal(lambda: read_history(folder)), UnreadableHistoryError)


def test_without_git_it_says_so(tmp_path, monkeypatch):
    folder = generate_repository(tmp_path / "r", commits=8)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = refusal(lambda: read_history(folder))
    assert isinstance(found, GitMissingError)


def test_git_that_fails_on_the_way_is_an_error(tmp_path):
    folder = generate_repository(tmp_path / "r", commits=8)
    repository = repository_module.Repository.open(folder)
    with pytest.raises(UnreadableHistoryError):
        list(repository.records("log", "--no-such-option"))
