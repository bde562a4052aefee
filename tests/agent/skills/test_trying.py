"""Trigger tests beside a skill: read as people write them, and run on a set of skills."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.skills.checks import TriggerResult, TriggerTest, TriggerTests, read_tests, run_tests
from agent.skills.skill import AutoInvoke, Severity, SkillSet, SkillState
from tests.agent.skills.shelves import shelf, skill

FILE = "workspace/skills/mail/tests.yaml"


def read(text: str) -> TriggerTests:
    return read_tests(text, skill="mail", file=FILE)


def run(text: str, on: SkillSet, **more: object) -> list[TriggerResult]:
    tests = read(text)
    assert tests.problems == ()
    return list(run_tests(tests.tests, skill="mail", skills=on, **more))  # type: ignore[arg-type]


# --- reading -----------------------------------------------------------------------------------


def test_the_documented_format_is_read_with_its_lines() -> None:
    found = read(
        "# what calls it up\n"
        "- message: Any new mail?\n"
        "  must: match\n"
        "- message: 'What is 2 + 3?'\n"
        "  must: no match\n"
        "- message: Draft a commit message\n"
        "  must: match\n"
        "  tools: [read_file, exec]\n"
        "  skills: [commit-message]\n"
    )

    assert found.problems == ()
    assert found.tests == (
        TriggerTest(message="Any new mail?", must_match=True, line=2),
        TriggerTest(message="What is 2 + 3?", must_match=False, line=4),
        TriggerTest(
            message="Draft a commit message",
            must_match=True,
            tools=("read_file", "exec"),
            skills=("commit-message",),
            line=6,
        ),
    )


@pytest.mark.parametrize(
    ("lines", "must_match"),
    [
        ("must: MUST MATCH", True),
        ("must: no_match", False),
        ("must_match: true", True),
        ("must_not_match: true", False),
        ("must_not_match: false", True),
        ("mustMatch: yes", True),
        ("match: no", False),
        ("name: only a label", True),
    ],
)
def test_other_ways_to_say_it_are_read(lines: str, must_match: bool) -> None:
    found = read(f"- message: Hi\n  {lines}\n")

    assert found.problems == ()
    assert [test.must_match for test in found.tests] == [must_match]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("- message: [a\n", 2, "not YAML"),
        ("- message: a\n- must: match\n", 2, "no message"),
        ("- message: a\n  must: perhaps\n", 2, "`match` or `no match`"),
        ("- message: a\n  must: match\n  must_not_match: true\n", 1, "both"),
        ("- message: a\n  tools: {a: b}\n", 2, "list of texts"),
        ("- just words\n", 1, "a test needs"),
        ("message: a\nmust: match\n", 1, "must be a list"),
        ("", 0, "no test"),
        ("- &a {message: a}\n- *a\n", 1, "references"),
        ("[" * 5_000, 1, "nest"),
        ("- message: x\n" * 40_000, 0, "longer than"),
    ],
)
def test_what_cannot_be_read_is_a_problem_with_its_line(text: str, line: int, words: str) -> None:
    problems = [one for one in read(text).problems if one.severity is Severity.ERROR]

    assert words in problems[0].text
    assert (problems[0].line, problems[0].file, problems[0].skill) == (line, FILE, "mail")


@given(st.text("- :\n[]{}'\"#messagutchno,&*!", max_size=60))
def test_any_file_gives_tests_or_problems_and_raises_nothing(text: str) -> None:
    found = read(text)

    assert found.tests or found.problems


# --- running -----------------------------------------------------------------------------------


def test_tests_pass_and_fail_with_the_reason() -> None:
    passed, failed, wrong = run(
        "- {message: new mails, must: match}\n"
        "- {message: my profile, must: match}\n"
        "- {message: a mail for you, must: no match}\n",
        shelf(skill("mail", "mail", "file")),
    )

    assert (passed.passed, failed.passed, wrong.passed) == (True, False, False)
    assert passed.reasons == ("mail matches: the keyword 'mail' stands in the message, as 'mails'",)
    assert "'file' stands in 'profile' only as a part" in failed.reasons[0]
    assert "mail matches: the keyword 'mail'" in wrong.reasons[0]


def test_a_skill_that_is_not_used_is_tried_as_if_it_were() -> None:
    waiting = skill("mail", "mail", state=SkillState.QUARANTINED)
    on = shelf(waiting, skill("post", "letter", state=SkillState.OFF))

    alone, both, none, unknown = run(
        "- message: mail\n"
        "- {message: mail and letters, skills: [mail, post]}\n"
        "- {message: mail alone, skills: [post], must: no match}\n"
        "- {message: mail, skills: [gone]}\n",
        on,
    )

    assert (alone.passed, both.passed, none.passed) == (True, True, True)
    assert "not used at present: it is in quarantine" in alone.reasons[1]
    assert unknown.reasons == ("there is no skill named gone",)


def test_a_skill_may_not_use_more_tools_than_its_test_allows() -> None:
    on = shelf(
        skill(
            "mail",
            "mail",
            required_tools=("read_file", "exec"),
            auto_invoke=(AutoInvoke(tool="web_search"),),
        )
    )

    allowed, refused, silent = run(
        "- {message: mail, tools: [read_file, exec, web_search]}\n"
        "- {message: mail, tools: [read_file]}\n"
        "- {message: mail}\n",
        on,
    )

    assert allowed.passed
    assert silent.passed
    assert refused.reasons[:2] == (
        "mail uses the tool exec, which the test does not allow",
        "mail uses the tool web_search, which the test does not allow",
    )
