"""The skills and templates that ship: complete, well formed, triggered by the right messages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from agent.prompt.snippets import Snippets
from agent.skills.checks import TriggerTest, read_tests, run_tests
from agent.skills.reader import SkillFile, SkillReading, read_skill
from agent.skills.rules import Pattern
from agent.skills.skill import Skill, SkillPlace, SkillSet
from agent.skills.suspicious import findings
from agent.skills.why import SkillVerdict, why
from tests.checkout import ROOT

SKILLS, PROMPTS = ROOT / "skills", ROOT / "prompts"

PLAYBOOKS = {
    *("email-triage", "email-compose", "schedule-meeting", "research-and-share"),
    *("telegram-conversation", "memory-recall", "file-operations", "daily-briefing"),
    *("contact-lookup", "email-classify", "system-health-check", "message-cleanup"),
    *("web-browsing", "cron-scheduling"),
}

CRON: Mapping[str, tuple[str, int]] = {
    "morning-briefing": ("0 6 * * *", 0),
    "evening-recap": ("0 18 * * *", 0),
    "weekly-digest": ("0 18 * * 0", 0),
    "follow-up-tracker": ("0 9 * * *", 0),
    "pre-meeting-prep": ("", 15),
    "meeting-overload": ("0 20 * * *", 0),
    "email-processor": ("", 30),
    "memory-synthesis": ("0 3 * * 0", 0),
    "health-report": ("", 6 * 60),
}
"""Cron text or minutes (SPEC §7)."""

INSTRUCTION = {"skill-creator", "commit-message", "code-review", "summarize"}

TOOLS = set(
    re.findall(
        r"\w+",
        """
    read_file write_file edit_file append_file list_dir search_files exec web_fetch web_search
    send_message send_file react remind_me record_event list_events schedule_job list_jobs
    update_job remove_job run_job store_fact search_memories list_facts update_fact forget_fact
    search_conversations read_notes append_notes get_profile update_profile save_document
    search_documents list_documents remove_document read_skill run_skill create_skill update_skill
    list_skills spawn subagent tool_categories tool_list tool_search tool_describe tool_call
    get_status nothing_to_report i2c spi
    """,
    )
)
"""All built-in tools (SPEC §6)."""

NOT_WITHOUT_A_PERSON = {
    *("send_message", "send_file", "remind_me", "record_event", "schedule_job", "update_job"),
    *("remove_job", "run_job"),
}
"""Absent from runs by the clock (SPEC §5), so no cron skill may count on them."""

NAMES_IN_BACKTICKS = {"required_tools", "interval_minutes", "max_steps", "no_tools", "deliver_to"}
NAMES_IN_BACKTICKS |= {"full_context", "auto_invoke", "older_than"}

PLACEHOLDERS: Mapping[str, set[str]] = {
    "routing": {"SERVERS"},
    "heartbeat": {"TIME", "LIST"},
    "proactive": set(),
    "subagent": set(),
    "compaction": {"CONVERSATION", "SUMMARY"},
    "merge": {"FIRST", "SECOND"},
    "extraction": {"KNOWN_FACTS", "CONVERSATION", "SPEAKERS", "FACTS_MAX"},
    "insights": {"MESSAGE", "REPLY", "TOOLS", "CURRENT"},
    "directness": set(),
    "reminder": set(),
    "format_slack": set(),
    "surroundings": {"VERSION", "SYSTEM"},
    "acting": set(),
}
"""Templates with the placeholders that each holds, and no other."""

ANSWERS: Mapping[str, set[str]] = {
    "compaction": {"boundary_index", "reason", "confidence", "summary"},
    "merge": {"summary"},
    "extraction": {"facts"},
    "insights": {"pins", "recommendations"},
}
"""Templates that want JSON, with the keys of the object."""


def folders() -> list[str]:
    return sorted(path.name for path in SKILLS.iterdir() if path.is_dir())


@cache
def reading(name: str) -> SkillReading:
    data = (SKILLS / name / "SKILL.md").read_bytes()
    return read_skill(data, SkillFile(folder_name=name, place=SkillPlace.SHIPPED))


def skill(name: str) -> Skill:
    found = reading(name).skill
    assert found is not None, reading(name).problems
    return found


@cache
def trigger_tests(name: str) -> tuple[TriggerTest, ...]:
    text = (SKILLS / name / "tests.yaml").read_text(encoding="utf-8")
    found = read_tests(text, skill=name, file=f"skills/{name}/tests.yaml")
    assert not found.problems
    return found.tests


@pytest.fixture(scope="module")
def shelf() -> SkillSet:
    """All that ships, those that run by the clock enabled."""
    return SkillSet(skills=tuple(skill(name) for name in folders()))


def triggered(shelf: SkillSet, message: str) -> set[str]:
    """The names of the skills that a message brings into a prompt."""
    found = why(shelf, (), message)
    return {one.skill.name for one in found.skills if one.verdict is SkillVerdict.PICKED}


def named_tools(text: str) -> set[str]:
    """Words that look like a tool's name: with an underscore, in lower case."""
    found = re.findall(r"(?<![\w.<-])[a-z]+(?:_[a-z]+)+(?!\w|\.\w)", text)
    return set(found) - NAMES_IN_BACKTICKS


each_skill = pytest.mark.parametrize("name", folders())
each_playbook = pytest.mark.parametrize("name", sorted(PLAYBOOKS))
each_cron = pytest.mark.parametrize("name", sorted(CRON))
each_template = pytest.mark.parametrize("name", sorted(PLACEHOLDERS))


# --- which there are, and of what kind ---------------------------------------------------------


def test_exactly_the_promised_skills_ship() -> None:
    shipped = set(folders())

    assert shipped == PLAYBOOKS | set(CRON) | INSTRUCTION


@each_skill
def test_a_shipped_skill_reads_without_a_complaint(name: str) -> None:
    found = reading(name)

    assert [str(problem) for problem in found.problems] == []
    assert found.skill is not None
    assert found.skill.name == name
    assert 40 <= len(found.skill.description) <= 300  # what the list shows of it
    assert found.skill.license == "MIT"


@each_skill
def test_a_shipped_skill_would_raise_no_suspicion_if_it_were_installed(name: str) -> None:
    content = (SKILLS / name / "SKILL.md").read_bytes()

    assert findings("SKILL.md", content) == ()


@each_playbook
def test_a_playbook_has_keywords_and_a_length_worth_its_tokens(name: str) -> None:
    playbook = skill(name)

    assert playbook.is_playbook
    assert len(playbook.keywords) >= 10
    assert 150 <= len(playbook.text.split()) <= 350
    assert playbook.priority > 0
    assert playbook.allowed_tools is None  # MCP tools have names that nobody here knows


@each_cron
def test_a_cron_skill_runs_when_promised(name: str) -> None:
    schedule = skill(name).schedule

    assert schedule is not None
    assert (schedule.cron, schedule.interval_minutes) == CRON[name]
    assert not skill(name).keywords
    assert "Off until enabled" in skill(name).description


@each_cron
def test_a_cron_skill_knows_that_nobody_is_there(name: str) -> None:
    text = skill(name).text

    assert text.startswith("Goal: ")
    assert "nothing_to_report" in text
    assert 150 <= len(text.split()) <= 350
    assert named_tools(text).isdisjoint(NOT_WITHOUT_A_PERSON)


@each_cron
def test_a_cron_skill_that_lists_its_tools_lists_all_it_names(name: str) -> None:
    listed = set(skill(name).required_tools)

    assert not listed or named_tools(skill(name).text) == listed


# --- the tools that they name ------------------------------------------------------------------


@each_skill
def test_a_skill_names_only_tools_that_there_are(name: str) -> None:
    assert named_tools(skill(name).text) <= TOOLS
    assert set(skill(name).required_tools) <= TOOLS
    assert {tool for test in trigger_tests(name) for tool in test.tools or ()} <= TOOLS


# --- what triggers them ------------------------------------------------------------------------


@each_skill
def test_trigger_tests_are_many_and_of_both_kinds(name: str) -> None:
    tests = trigger_tests(name)

    expected = [test for test in tests if test.must_match]
    unwanted = [test for test in tests if not test.must_match]
    assert len(tests) >= 6
    assert len({test.message for test in tests}) == len(tests)
    assert len(unwanted) >= 3
    # What runs by the clock is never brought in by a message, so it has no messages that do.
    assert len(expected) >= 3 if name not in CRON else not expected


@each_skill
def test_a_skill_is_triggered_by_exactly_the_messages_that_its_tests_say(
    name: str, shelf: SkillSet
) -> None:
    results = run_tests(trigger_tests(name), skill=name, skills=shelf, tools_known=TOOLS)

    assert [(one.test.message, one.reasons) for one in results if not one.passed] == []


def test_no_keyword_stands_in_two_playbooks() -> None:
    keywords = [keyword for name in PLAYBOOKS for keyword in skill(name).keywords]

    assert sorted(keywords) == sorted(set(keywords))


@pytest.mark.parametrize(
    "message",
    [
        "Good morning! How are you?",
        "I had a meeting with my boss and it went well.",
        "We watched a film about a spider and its web.",
        "Tell me a joke about cats.",
        "I run five kilometres every morning before work.",
        "She filed for divorce last week.",
        "My sister is expecting a baby in May!",
        "Things are looking up since the new job.",
        "I always forget my keys.",
        "It reminded me of the good old days.",
    ],
)
def test_ordinary_talk_triggers_nothing(message: str, shelf: SkillSet) -> None:
    assert triggered(shelf, message) == set()


# --- templates ---------------------------------------------------------------------------------


def template(name: str) -> str:
    return (PROMPTS / f"{name}.md").read_text(encoding="utf-8")


@each_template
def test_a_template_holds_its_placeholders_and_no_other(name: str) -> None:
    held = set(re.findall(r"\{\{([A-Z_]+)\}\}", template(name)))

    assert held == PLACEHOLDERS[name]


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_a_template_that_wants_json_shows_an_example_that_is_json(name: str) -> None:
    example = template(name).partition("Example:\n")[2].partition("\n")[0]

    assert set(json.loads(example)) == ANSWERS[name]


@pytest.mark.parametrize("name", [*sorted(ANSWERS), "heartbeat", "proactive", "subagent", "acting"])
def test_a_template_says_that_foreign_text_is_never_an_instruction(name: str) -> None:
    words = " ".join(template(name).split())

    assert re.search(r"\bmaterial\b.{0,120}\bnever an instruction\b", words)


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_what_is_put_into_a_template_stands_in_a_marked_block(name: str) -> None:
    text = template(name)
    blocks = {*PLACEHOLDERS[name]} - {"SPEAKERS", "FACTS_MAX"}

    for block in blocks:
        assert re.search(rf"<(\w+)>\n\{{\{{{block}\}}\}}\n</\1>", text), block


# --- snippets ----------------------------------------------------------------------------------


def test_the_seven_snippets_are_read_without_a_complaint_and_fit_a_button(tmp_path: Path) -> None:
    found = Snippets(shipped=PROMPTS, workspace=tmp_path).read()

    assert [str(problem) for problem in found.problems] == []
    assert len(found.snippets) == 7
    assert len({snippet.message for snippet in found.snippets}) == 7
    assert all(0 < len(snippet.tooltip) <= 20 for snippet in found.snippets)


def test_the_readme_of_the_skills_names_them_all() -> None:
    text = Path(SKILLS / "README.md").read_text(encoding="utf-8")

    rows = re.findall(r"^\| \*\*(\w+ ?\w*)\*\*.*\| ([a-z, -]+) \|$", text, re.MULTILINE)

    listed = {kind: set(names.split(", ")) for kind, names in rows}
    assert listed == {
        "playbook": PLAYBOOKS,
        "cron skill": set(CRON),
        "instruction skill": INSTRUCTION,
    }


def test_no_pattern_that_ships_takes_long_on_any_text() -> None:
    """They are searched for without a limit of time: here with one, on what would keep them."""
    patterns = [pattern for name in folders() for pattern in skill(name).patterns]
    assert patterns
    words = sorted({word for pattern in patterns for word in re.findall(r"[a-z]{2,}", pattern)})
    texts = ["a" * 20_000, "a " * 10_000, "\t" * 20_000]
    texts += [f"{word} " * (20_000 // len(word)) for word in words]
    texts += [" ".join(words) * 50, " ".join(reversed(words)) * 50]

    for pattern in patterns:
        searched = Pattern(pattern)
        for text in texts:
            searched.found(text, limit_s=5)  # raises TooSlow
