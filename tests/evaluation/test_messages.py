"""Messages become questions; what says nothing is recognized."""

import pytest

from synapse_retrievers.evaluation.messages import is_bot, is_version_bump, question


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        ("Fix the parser", "Fix the parser"),
        ("Fix\r\n\r\n  the   parser \n\n", "Fix\nthe parser"),
        ("Fix it\n\nSigned-off-by: A B <a@example.org>\nCo-Authored-By: C <c@x.io>", "Fix it"),
        ("Fix it\n\nReviewed-by: A\nChange-Id: I123\nCc: list@example.org", "Fix it"),
        ("Fix it\n\ngit-svn-id: https://svn.example.org/trunk@12 ab-cd", "Fix it"),
        ("Fix it\n\n(cherry picked from commit 0123abc)\n", "Fix it"),
        ("See https://example.org/a?b=c#d, then ask a.b+c@mail.example.org.", "See then ask ."),
        ("deps: qs@6.5.2", "deps: qs@6.5.2"),
        ("Closes: the file\nBug: none", "Closes: the file\nBug: none"),
        ("Über naïve Wörter 漢字", "Über naïve Wörter 漢字"),
        ("Signed-off-by: A <a@example.org>", ""),
        ("", ""),
    ],
)
def test_a_message_loses_trailers_addresses_and_empty_lines(message, asked):
    assert question(message) == asked


@pytest.mark.parametrize(
    ("author", "is_machine"),
    [
        ("dependabot[bot] <1+dependabot[bot]@users.noreply.example.org>", True),
        ("renovate <bot@renovateapp.example.org>", True),
        ("pre-commit-ci <x@example.org>", True),
        ("GitHub Actions <x@example.org>", False),
        ("github-actions <x@example.org>", True),
        ("Marc Cabot <m@example.org>", False),
        ("Lowell Abbott <l@example.org>", False),
        ("", False),
    ],
)
def test_machines_are_told_from_people(author, is_machine):
    assert is_bot(author) is is_machine


@pytest.mark.parametrize(
    "subject",
    [
        "1.2.0",
        "v4.17.1",
        "3.0.0beta3",
        "Release 0.6.1",
        "Release: v1.0",
        "chore: release 1.0.0 (#12)",
        "Version 0.23.2 (#2510)",
        "start version 2.2.1",
        "Preparing for a 0.5.1 bugfix release",
        "Bump version to 1.2",
        "Bumped version number for this branch to 0.9",
        "Bump to 4.2-dev",
        "version bump (v0.4.1)",
        "Bump tox from 3.16.0 to 3.16.1 (#7)",
        "build(deps): bump actions/checkout from 5.0.0 to 6.0.0",
        "Bump the github-actions group with 8 updates",
    ],
)
def test_version_bumps_are_recognized(subject):
    assert is_version_bump(subject)


@pytest.mark.parametrize(
    "subject",
    [
        "",
        "Release is near",
        "Release the lock when the reader of a closed file fails",
        "Fix crash on Python 3.12",
        "Add a version option",
        "Bump the log level of retries",
        "Update the README for Windows",
        "Drop support for 3.8",
    ],
)
def test_real_work_is_no_version_bump(subject):
    assert not is_version_bump(subject)
