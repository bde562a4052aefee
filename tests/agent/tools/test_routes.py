"""Which groups of tools a message brings in by its words; whose file counts; what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent.prompt.templates import TextFiles
from agent.tools.discovery import FILE_NAME, RouteFile, Routes, RoutesWrong

SHIPPED = Path(__file__).parents[3] / "prompts"

SMALL = """
otherwise = ["web"]
[[route]]
words = ["remind", "every day", "https://", "提醒"]
groups = ["schedule", "memory"]
[[route]]
words = ["note"]
groups = ["memory"]
"""


@pytest.fixture(scope="module")
def shipped() -> Routes:
    return Routes((SHIPPED / FILE_NAME).read_text("utf-8"), source=FILE_NAME)


def route_file(tmp_path: Path, text: str | None) -> tuple[RouteFile, Path]:
    own = tmp_path / "prompts" / FILE_NAME
    own.parent.mkdir()
    if text is not None:
        own.write_text(text, "utf-8")
    return RouteFile(SHIPPED, tmp_path, read=TextFiles().read), own


@pytest.mark.parametrize(
    ("text", "groups", "words"),
    [
        ("I was reminded of it", ("schedule", "memory"), ("remind",)),
        ("a walk EVERY  day", ("schedule", "memory"), ("every day",)),
        ("see https://example.org", ("schedule", "memory"), ("https://",)),
        ("明天提醒我", ("schedule", "memory"), ("提醒",)),
        ("remind me of the note", ("schedule", "memory"), ("remind", "note")),
        ("notebook", ("web",), ()),
        ("", ("web",), ()),
    ],
)
def test_words_bring_in_groups_and_nothing_matched_brings_in_the_others(
    text: str, groups: tuple[str, ...], words: tuple[str, ...]
) -> None:
    routed = Routes(SMALL, source="small").match(text)

    assert routed.groups == groups
    assert routed.words == words


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("Wake me at seven tomorrow", "schedule"),
        ("What is new on https://example.org?", "web"),
        ("Keep in mind and remember that I am vegan", "memory"),
        ("Erinnere mich an den Termin", "schedule"),
        ("帮我搜索一下", "web"),
    ],
)
def test_the_shipped_routes_know_plain_wishes(shipped: Routes, text: str, group: str) -> None:
    assert group in shipped.match(text).groups


def test_a_copy_in_the_workspace_wins_and_a_change_is_seen_at_once(tmp_path: Path) -> None:
    routes, own = route_file(tmp_path, SMALL)
    routes.check()
    before = routes.routes().match("note").groups

    own.write_text(SMALL.replace('"note"', '"jotting"') + "\n", "utf-8")

    assert before == ("memory",)
    assert routes.routes().match("jotting").groups == ("memory",)
    own.unlink()
    assert routes.routes().match("Blue or green?").groups == ("web", "memory")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("otherwise = [", "no valid TOML"),
        ("others = []", "others: this key is not known"),
        ('[[route]]\nwords = ["a"]', "route 1, groups: Field required"),
        ('[[route]]\nwords = [" "]\ngroups = ["web"]', "route 1, words 1: String should have"),
        ('[[route]]\nwords = ["\u200b"]\ngroups = ["web"]', "hold no character that is seen"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_at_start_with_its_place(
    tmp_path: Path, text: str, says: str
) -> None:
    routes, own = route_file(tmp_path, text)

    with pytest.raises(RoutesWrong) as refused:
        routes.check()

    assert str(own) in str(refused.value)
    assert says in str(refused.value)


def test_a_copy_that_breaks_while_the_bot_runs_is_told_once_and_the_shipped_one_serves(
    tmp_path: Path,
) -> None:
    routes, own = route_file(tmp_path, SMALL)
    routes.routes()

    own.write_text("otherwise = [", "utf-8")
    with capture_logs() as logs:
        groups = [routes.routes().match("Blue or green?").groups for _ in range(3)]

    assert groups == [("web", "memory")] * 3
    assert [entry["event"] for entry in logs] == ["tool_routes_broken"]
