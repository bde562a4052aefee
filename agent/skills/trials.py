"""The trigger tests that stand beside the skills of a shelf: found, read and run.

Called by `hearthbot skills`. Reads files: use a thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent.skills.folder import SKILL_FILE, read_file
from agent.skills.front_matter import Unreadable
from agent.skills.rules import Rule
from agent.skills.skill import Place, Shelf, Skill
from agent.skills.trying import FILE_CHARS_MAX, TriggerResult, TriggerTests, read_tests, run_tests
from agent.skills.validating import TESTS_FILE


def has_tests(skill: Skill) -> bool:
    """Whether there is a file of tests."""
    return skill.folder is not None and (skill.folder / TESTS_FILE).is_file()


def tests_file(skill: Skill) -> str:
    """As a person would name it, like the place of the skill."""
    where = "workspace/" if skill.place is Place.WORKSPACE else ""
    return f"{where}{skill.location.removesuffix(SKILL_FILE)}{TESTS_FILE}"


def tests_of(skill: Skill) -> TriggerTests:
    """The tests of one skill; none where there is no file, or none that can be read."""
    if skill.folder is None:
        return TriggerTests()
    try:
        data = read_file(str(skill.folder / TESTS_FILE), bytes_max=4 * FILE_CHARS_MAX)
    except (OSError, Unreadable):
        return TriggerTests()
    text = data.decode("utf-8", "replace")
    return read_tests(text, skill=skill.name, file=tests_file(skill))


def tried(
    skill: Skill, shelf: Shelf, rules: Sequence[Rule]
) -> tuple[TriggerTests, tuple[TriggerResult, ...]]:
    """The tests of one skill, and how they came out; one in quarantine is tried as if in use."""
    tests = tests_of(skill)
    small = _without_others(shelf, skill, tests, rules)
    return tests, run_tests(tests.tests, skill=skill.name, shelf=small, rules=rules)


def _without_others(
    shelf: Shelf, skill: Skill, tests: TriggerTests, rules: Sequence[Rule]
) -> Shelf:
    """The shelf without the playbooks that do not matter: they are matched each by itself, and to
    explain them all for each test takes most of the time."""
    named = {skill.name}
    named.update(name for test in tests.tests for name in test.skills)
    named.update(name for rule in rules for name in rule.skills)
    kept = (one for one in shelf.skills if one.name in named or one.is_listed)
    return Shelf(skills=tuple(kept))
