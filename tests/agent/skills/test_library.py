from __future__ import annotations

import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent.skills.library import KEPT_S, LOOK_EVERY_S, RETRY_S, SkillLibrary
from agent.skills.places import SkillFolders
from agent.skills.skill import Severity, SkillPlace, SkillSet, SkillState
from memory.records.rows import SkillRecord, StoredPlaybook
from tests.agent.skills.given import KeptRecords, put, text_of
from tests.fakes import FixedClock


class Rig:
    """A library over folders in `root`, with its clock and its records."""

    def __init__(self, root: Path) -> None:
        self.workspace = root / "workspace" / "skills"
        self.user = root / "user"
        self.shipped = root / "shipped"
        for folder in (self.workspace, self.user, self.shipped):
            folder.mkdir(parents=True)
        self.clock = FixedClock()
        self.records = KeptRecords()
        self.env: dict[str, str] = {}
        self.programs = {"sh"}
        self.given: dict[str, set[str]] = {}
        places = SkillFolders(workspace=self.workspace, shipped=self.shipped, user=self.user)
        self.shelf = self.built(places)

    def built(self, places: SkillFolders) -> SkillLibrary:
        return SkillLibrary(
            places,
            self.records,
            clock=self.clock,
            env=self.env,
            given=self.given,
            find_program=lambda name: name if name in self.programs else None,
            system="linux",
        )

    async def now(self) -> SkillSet:
        return await self.shelf.current()

    async def later(self, seconds: float = LOOK_EVERY_S) -> SkillSet:
        self.clock.move(seconds)
        return await self.shelf.current()


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def playbook(name: str, text: str = "Do it") -> StoredPlaybook:
    return StoredPlaybook(name=name, description="d", keywords=("a",), text=text, priority=3)


# --- places ------------------------------------------------------------------------------------


async def test_the_strongest_place_wins_and_the_others_are_shadowed(rig: Rig) -> None:
    for root in (rig.workspace, rig.user, rig.shipped):
        put(root, "trains")
        put(root, root.name + "-own")
    rig.records.kept_playbooks["trains"] = playbook("trains")

    shelf = await rig.now()

    trains = shelf.get("trains")
    assert trains is not None
    assert trains.place is SkillPlace.WORKSPACE
    assert [skill.place for skill in shelf.shadowed] == [
        SkillPlace.STORED,
        SkillPlace.USER,
        SkillPlace.SHIPPED,
    ]
    assert [s.name for s in shelf.skills] == ["shipped-own", "skills-own", "trains", "user-own"]
    assert shelf.problems == ()


# --- what is broken ----------------------------------------------------------------------------


async def test_one_broken_folder_takes_no_other_down(rig: Rig, tmp_path: Path) -> None:
    root = rig.workspace
    put(root, "good")
    (put(root, "not-text") / "SKILL.md").write_bytes(b"caf\xe9")
    (put(root, "unclosed") / "SKILL.md").write_text("---\nname: unclosed\n")
    (root / "a-file").write_text("no folder")
    (root / "empty").mkdir()
    (root / "README.md").write_text("about these skills")
    (root / ".hidden").mkdir()
    os.mkfifo(root / "a-pipe")
    put(tmp_path, "outside")
    (root / "linked").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to(root / "loop")
    (root / "to-good").symlink_to(root / "good")
    (put(root, "nested") / "more").symlink_to(tmp_path)
    folder = root / "a-folder-as-file" / "SKILL.md"
    folder.mkdir(parents=True)
    os.mkfifo(put(root, "pipe-inside") / "pipe")
    linked_file = put(root, "linked-file") / "SKILL.md"
    linked_file.unlink()
    linked_file.symlink_to(tmp_path / "outside" / "SKILL.md")
    (root / "odd\nname").mkdir()
    (root / os.fsdecode(b"caf\xe9")).mkdir()

    shelf = await rig.now()

    assert [skill.name for skill in shelf.skills] == ["good"]
    told = {problem.file.removeprefix("workspace/skills/"): problem for problem in shelf.problems}
    assert set(told) == {
        "not-text/SKILL.md",
        "unclosed/SKILL.md",
        "a-file",
        "empty",
        "a-pipe",
        "linked",
        "loop",
        "to-good",
        "nested",
        "a-folder-as-file",
        "pipe-inside",
        "linked-file",
        "'odd\\nname'",
        "'caf\\udce9'",
    }
    assert told["unclosed/SKILL.md"].line == 1
    assert "links are not followed" in told["linked"].text
    assert "links are not followed" in told["nested"].text
    assert told["empty"].severity is Severity.WARNING


# --- changes -----------------------------------------------------------------------------------


async def test_a_change_is_live_within_five_seconds(rig: Rig) -> None:
    folder = put(rig.workspace, "trains", body="Old")
    assert LOOK_EVERY_S <= 5
    before = await rig.now()
    (folder / "SKILL.md").write_text(text_of("trains", body="New"))
    put(rig.workspace, "buses")

    at_once = await rig.now()
    later = await rig.later()

    assert at_once is before
    trains = later.get("trains")
    assert trains is not None
    assert trains.text == "New"
    assert later.get("buses") is not None


async def test_a_change_that_keeps_size_and_time_is_noticed(rig: Rig) -> None:
    file = put(rig.workspace, "trains", body="Old") / "SKILL.md"
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    await rig.now()
    await rig.later()
    file.write_text(text_of("trains", body="New"))
    os.utime(file, ns=times)

    await rig.later()
    found = (await rig.later()).get("trains")

    assert found is not None
    assert found.text == "New"


async def test_the_digest_names_every_file_wherever_the_folder_is(rig: Rig) -> None:
    first, second = put(rig.workspace, "trains"), put(rig.user, "trains")
    for folder in (first, second):
        (folder / "scripts").mkdir()
        (folder / "scripts" / "get.sh").write_text("echo 1")
    shelf = await rig.now()
    here, there = shelf.skills[0], shelf.shadowed[0]
    (first / "__pycache__").mkdir()
    (first / "__pycache__" / "x.pyc").write_text("made by running it")
    same = await rig.later()
    (first / "scripts" / "get.sh").write_text("echo 2")
    changed = await rig.later()
    (first / "scripts" / "get.sh").rename(first / "scripts" / "got.sh")
    renamed = await rig.later()

    digests = [s.skills[0].digest for s in (same, changed, renamed)]
    assert here.digest == there.digest == digests[0]
    assert len(set(digests)) == 3


# --- the database ------------------------------------------------------------------------------


async def test_a_change_by_a_tool_is_seen_at_once(rig: Rig) -> None:
    await rig.now()
    await rig.records.put_playbook(playbook("post"))
    put(rig.workspace, "trains")

    rig.shelf.dropped()
    shelf = await rig.now()

    assert [skill.name for skill in shelf.skills] == ["post", "trains"]


async def test_the_stale_copy_serves_while_the_database_fails(rig: Rig) -> None:
    put(rig.workspace, "trains")
    await rig.records.put_playbook(playbook("post"))
    await rig.records.put_record(SkillRecord(name="trains", approved=False))
    await rig.now()
    rig.records.is_broken = True

    with capture_logs() as logs:
        stale = await rig.later(KEPT_S)
    rig.records.is_broken = False
    await rig.records.remove_playbook("post")
    again = await rig.later(RETRY_S)

    assert stale.get("post") is not None
    trains = stale.get("trains")
    assert trains is not None
    assert trains.state is SkillState.QUARANTINED
    assert [entry["event"] for entry in logs] == ["skills.records_unreadable"]
    assert again.get("post") is None


async def test_while_decisions_are_unknown_only_shipped_skills_are_used(rig: Rig) -> None:
    put(rig.workspace, "mine")
    put(rig.shipped, "theirs")
    rig.records.is_broken = True

    shelf = await rig.now()

    assert [skill.name for skill in shelf.used] == ["theirs"]
    assert "cannot be read" in shelf.problems[0].text


# --- states ------------------------------------------------------------------------------------


def state(shelf: SkillSet, name: str) -> SkillState:
    found = shelf.get(name)
    assert found is not None
    return found.state


async def test_a_skill_is_in_quarantine_until_it_is_approved_and_when_it_changes(
    rig: Rig,
) -> None:
    folder = put(rig.workspace, "trains")
    await rig.records.put_record(SkillRecord(name="trains", approved=False))
    waiting = await rig.now()
    digest = waiting.skills[0].digest
    await rig.records.put_record(SkillRecord(name="trains", approved=True, digest=digest))
    rig.shelf.dropped()
    approved = await rig.now()
    (folder / "run.sh").write_text("echo")
    changed = await rig.later()

    assert waiting.used == ()
    assert [state(s, "trains") for s in (waiting, approved, changed)] == [
        SkillState.QUARANTINED,
        SkillState.USABLE,
        SkillState.QUARANTINED,
    ]


@pytest.mark.case("SK-05")
async def test_only_what_the_machine_can_do_is_offered(rig: Rig) -> None:
    put(
        rig.workspace,
        "tasks",
        'metadata: {"openclaw":{"skillKey":"tasksApi","requires":{"env":["TASKS_URL",'
        '"TASKS_TOKEN"]},"primaryEnv":"TASKS_TOKEN"}}',
    )
    put(
        rig.workspace,
        "sim",
        'homepage: "http://127.0.0.1"',
        'metadata: {"openclaw": {"emoji": "🎬", "os": ["darwin","linux"], "requires": '
        '{"bins": ["no-such-bin"]}}}',
    )
    put(rig.workspace, "handoff", 'metadata: {"openclaw":{"os":["win32"]}}')
    put(rig.workspace, "mux", 'metadata: {"nanobot":{"requires":{"bins":["sh"]}}}')

    before = await rig.now()
    rig.env.update(TASKS_URL="http://x", TASKS_TOKEN="t")
    after = await rig.later()

    assert [skill.name for skill in before.used] == ["mux"]
    assert {s.name: s.missing for s in before.skills if s.state is SkillState.MISSING} == {
        "tasks": (
            "the environment variable TASKS_URL is not set",
            "the environment variable TASKS_TOKEN is not set",
        ),
        "sim": ("the program no-such-bin is not installed",),
        "handoff": ("it is for Windows",),
    }
    assert [skill.name for skill in after.used] == ["mux", "tasks"]
