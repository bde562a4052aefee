"""The threats of the threat model: each has a test that bears its id, or a reason why it needs
none. A list, so that none is lost unseen."""

from __future__ import annotations

from tests.checkout import ROOT
from tests.test_cases import marked

LIST = ROOT / "tests" / "threats.txt"
LAST = 26
TESTED = "tested"
NOT_HERE = "does not apply: "


def listed() -> dict[str, str]:
    """What the list says of each threat, by its id, in order."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    pairs = (line.partition(" ") for line in lines)
    return {name: said.strip() for name, _, said in pairs}


def test_the_list_speaks_of_every_threat_once_and_in_order() -> None:
    lines = LIST.read_text(encoding="utf-8").splitlines()

    assert [line.partition(" ")[0] for line in lines] == [f"T{n}" for n in range(1, LAST + 1)]
    for name, said in listed().items():
        is_reason = said.startswith(NOT_HERE) and len(said) > len(NOT_HERE)
        assert said == TESTED or is_reason, f"{name}: {said!r}"


def test_the_threats_that_are_tested_are_exactly_those_that_tests_bear() -> None:
    claimed = {name for name, said in listed().items() if said == TESTED}
    borne = marked("threat")

    assert sorted(claimed - borne) == [], "called tested, and no test bears them"
    assert sorted(borne - claimed) == [], "borne by a test: say so in tests/threats.txt"
