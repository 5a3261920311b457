"""Schema steps are recorded, repeatable and refuse what is newer."""

import sqlite3
from contextlib import closing

import pytest

from synapse_retrievers.errors import StoreVersionError
from synapse_retrievers.stores import migrations
from synapse_retrievers.stores.base import SCHEMA
from synapse_retrievers.stores.sqlite import SQLiteStore


@pytest.fixture
def path(tmp_path):
    SQLiteStore(tmp_path / "synapse.db").close()
    return tmp_path / "synapse.db"


def test_steps_are_numbered_up_to_the_schema_of_this_release():
    assert [step.version for step in migrations.STEPS] == list(range(1, SCHEMA + 1))


def test_each_step_is_recorded(path):
    with closing(sqlite3.connect(path)) as file:
        recorded = file.execute("SELECT version, name FROM migration").fetchall()
        assert recorded == [(step.version, step.name) for step in migrations.STEPS]
        assert file.execute("PRAGMA user_version").fetchone() == (SCHEMA,)
        assert file.execute("PRAGMA application_id").fetchone() == (migrations.APPLICATION_ID,)


def test_migrating_again_changes_nothing(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        before = file.execute("SELECT * FROM sqlite_master").fetchall()
        migrations.migrate(file, "url")
        assert file.execute("SELECT * FROM sqlite_master").fetchall() == before


def test_a_newer_schema_is_refused_and_left_alone(path):
    with closing(sqlite3.connect(path)) as file:
        file.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    content = path.read_bytes()
    with pytest.raises(StoreVersionError, match="upgrade"):
        SQLiteStore(path)
    assert path.read_bytes() == content


def test_a_failing_step_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "synapse.db"
    step = migrations.STEPS[0]
    broken = migrations.Step(1, "broken", (*step.statements, "CREATE NONSENSE"))
    monkeypatch.setattr(migrations, "STEPS", (broken,))
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        with pytest.raises(sqlite3.OperationalError):
            migrations.migrate(file, "url")
        assert not file.in_transaction
        assert file.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
        assert file.execute("PRAGMA user_version").fetchone() == (0,)


def test_a_file_that_becomes_a_store_while_it_is_looked_at_is_not_somebody_elses(tmp_path):
    path = tmp_path / "synapse.db"
    looking, making = (sqlite3.connect(path, isolation_level=None, timeout=0) for _ in range(2))
    for connection in (looking, making):
        connection.execute("PRAGMA journal_mode = WAL")

    def become(statement):
        if "user_version" in statement:
            looking.set_trace_callback(None)
            migrations.migrate(making, "test")

    looking.set_trace_callback(become)
    assert migrations.version_of(looking, "test") == 0
    assert migrations.version_of(looking, "test") == SCHEMA
    looking.close()
    making.close()
