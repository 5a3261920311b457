"""A failure of ours is counted, said once, and passed over."""

import logging

import pytest

from synapse_retrievers import Guard


def failing():
    raise ValueError("no")


def test_what_the_action_gives_is_given():
    assert Guard("it").run(lambda: 7, 0) == 7


def test_where_it_fails_the_other_value_is_given_counted_and_said_once(caplog):
    guard = Guard("the store")
    with caplog.at_level(logging.WARNING):
        assert [guard.run(failing, "otherwise") for _ in range(3)] == ["otherwise"] * 3
    assert guard.failures == 3
    (record,) = caplog.records
    assert record.getMessage().startswith("the store failed and is passed over")
    assert record.exc_info[0] is ValueError


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_the_program_is_not_held_up(error):
    def ending():
        raise error

    with pytest.raises(error):
        Guard("it").run(ending, None)
