"""A whole evaluation on small histories: the gate of quality, and what the figures are made of."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from synapse_retrievers.evaluation.datasets import generate_repository
from synapse_retrievers.evaluation.evaluate import evaluate, over_all
from synapse_retrievers.evaluation.learners import Settings
from synapse_retrievers.evaluation.log import Log
from synapse_retrievers.evaluation.page import page
from synapse_retrievers.evaluation.sources import as_log, from_git
from synapse_retrievers.params import RecallParams

ROOT = Path(__file__).parents[3]
SEEDS = (1, 2, 3)


def quietly(*_step):
    """Tell nobody."""


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Three histories that nobody has seen, each with 40 topics of three files."""
    folder = tmp_path_factory.mktemp("histories")
    made = [
        generate_repository(folder / f"made{seed}", commits=400, topics=40, seed=seed)
        for seed in SEEDS
    ]
    return [as_log(from_git(path, None, quietly), unit="chunks", k=8) for path in made]


@pytest.fixture(scope="module")
def found(logs):
    return [evaluate(log) for log in logs]


@pytest.fixture(scope="module")
def own():
    """This repository's own history."""
    if not (ROOT / ".git").exists():
        pytest.skip("no history is shipped")
    return as_log(from_git(ROOT, None, quietly), unit="chunks", k=8)


def test_the_gate_learning_helps_on_made_histories_and_harms_nobody(found):
    for one in found:
        told = one.systems["synapses"]
        assert told.asked >= 60
        assert told.recall.interval.low > 0
        assert told.metrics["reciprocal_rank"].difference >= 0
        assert told.metrics["ndcg"].difference >= 0
        assert told.recall.lost <= 0.04
        assert told.harmed <= 0.04
        assert one.quiet == 1.0, "an everyday question is not about made-up words"
        assert one.failures == 0


def test_the_gate_learning_does_not_harm_on_this_repository(own):
    one = evaluate(own, controls=False)
    for told in (one.fifths["20-40 %"], one.fifths["40-60 %"], one.systems):
        part = told["synapses"]
        assert part.recall.difference >= 0
        assert part.recall.lost <= 0.04
    assert one.quiet >= 0.95


@pytest.mark.parametrize("place", range(len(SEEDS)))
def test_the_gate_without_a_signal_nothing_changes(logs, place):
    one = evaluate(logs[place], mode="none", controls=False)
    asked = [told["synapses"] for told in (one.systems, *one.slices.values())]
    assert asked[0].asked
    for part in (part for part in asked if part.asked):
        for metric in part.metrics.values():
            assert (metric.difference, metric.won, metric.lost) == (0.0, 0.0, 0.0)
    assert one.systems["synapses"].entered == 0.0


@pytest.mark.parametrize("mode", ["shown", "noisy", "midrun"])
def test_the_gate_less_and_worse_evidence_still_helps(logs, mode):
    one = evaluate(logs[0], mode=mode, from_start=False, controls=False)
    assert one.mode == mode
    assert one.systems["synapses"].recall.interval.low > 0


def test_the_gate_garbage_costs_little(logs):
    one = evaluate(logs[0], mode="garbage", from_start=False, controls=False)
    assert one.systems["synapses"].recall.difference > -0.02


def test_controls_that_know_no_question_gain_less(found):
    for one in found:
        gains = {name: told.recall.difference for name, told in one.systems.items()}
        assert gains.keys() == {"synapses", "paper", "popularity", "random"}
        assert gains["synapses"] > max(gains["popularity"], gains["random"])
        assert len({told.asked for told in one.systems.values()}) == 1


def test_slices_fifths_and_steps_are_parts_of_what_was_asked(found, logs):
    for one, log in zip(found, logs, strict=True):
        last = one.systems["synapses"]
        assert one.pairs.shape == (2, last.asked)
        assert one.pairs.mean(axis=1).tolist() == pytest.approx(
            [last.recall.plain, last.recall.wrapped]
        )
        assert one.slices.keys() == {"novel queries", "hubs left out", "several nodes"}
        for told in (*one.slices.values(), *one.fifths.values(), *(s.systems for s in one.curve)):
            assert told.keys() == one.systems.keys()
            assert len({part.asked for part in told.values()}) == 1
        assert all(0 <= told["paper"].asked <= last.asked for told in one.slices.values())
        assert list(one.fifths) == [f"{n}-{n + 20} %" for n in range(0, 100, 20)]
        steps = [(step.low, step.high) for step in one.curve]
        assert steps == [(0, 10), (10, 25), (25, 50), (50, 100), (100, 200), (200, 400)]
        asked = sum(step.systems["synapses"].asked for step in one.curve)
        assert asked == sum(told["synapses"].asked for told in one.fifths.values())
        assert one.runs == len(log.runs) == one.taught
        first, *_, latest = (step.systems["synapses"].recall.difference for step in one.curve)
        assert first < latest


def test_a_shorter_evaluation_asks_the_last_fifth_alone_and_finds_the_same(logs, found):
    one = evaluate(logs[0], from_start=False, controls=False)
    assert one.systems["synapses"] == found[0].systems["synapses"]
    assert one.slices["hubs left out"]["synapses"] == found[0].slices["hubs left out"]["synapses"]
    assert list(one.systems) == ["synapses"]
    assert list(one.fifths) == ["80-100 %"]


def test_settings_change_what_is_found(logs, found):
    settings = Settings(recall=RecallParams(displacements=0, boost=0.0))
    one = evaluate(logs[0], settings=settings, from_start=False, controls=False)
    assert one.systems["synapses"].recall.difference == 0.0
    assert found[0].systems["synapses"].recall.difference > 0.0


def test_over_all_logs_each_counts_once(found):
    told = over_all(found)
    gains = [one.systems["synapses"].recall.relative for one in found]
    assert told.relative == pytest.approx(np.mean(gains))
    assert (told.better, told.worse, told.logs) == (3, 0, 3)


def test_a_log_without_runs_is_evaluated_to_nothing():
    one = evaluate(Log("empty", (), frozenset(), 8, {}))
    assert one.systems["synapses"].asked == 0
    assert (one.quiet, one.milliseconds, one.curve) == (None, None, ())


def test_the_page_needs_nothing_else_and_shows_every_log(found):
    drawn = page(found)
    assert drawn.count("<svg") == 1 + len(found)
    assert not re.search(r"(src|href)=\"?http", drawn)
    for one in found:
        assert one.name in drawn
        assert f"{one.systems['paper'].recall.wrapped:.3f}" in drawn


def test_names_on_the_page_are_text():
    log = Log("<b>log</b>", (), frozenset(), 8, {})
    assert "<b>log" not in page([evaluate(log)])


def test_progress_tells_every_stage(logs):
    told = []
    evaluate(logs[0], from_start=False, tell=lambda *step: told.append(step))
    assert json.dumps(told[-1][0]) == '"made1: random displacement"'
    assert {stage for stage, done, total in told if done == total} == {
        *("made1: learning", "made1: the paper's settings"),
        *("made1: popularity", "made1: random displacement"),
    }
