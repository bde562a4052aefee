"""Skills on disk and in the database, for the tests of the library and of installing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from memory.records.errors import StorageFull
from memory.records.rows import SkillRecord, StoredPlaybook
from memory.stores.switches import SqliteSkillRecords


def text_of(name: str, *lines: str, body: str = "Text") -> str:
    front = ["---", f"name: {name}", f"description: About {name}", *lines, "---", body]
    return "\n".join(front)


def put(root: Path, name: str, *lines: str, body: str = "Text") -> Path:
    """A skill below `root`; returns its folder."""
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(text_of(folder.name, *lines, body=body))
    return folder


def files_below(root: Path) -> Mapping[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


class KeptRecords(SqliteSkillRecords):
    """Records without a database. Counts how often it is asked."""

    def __init__(self) -> None:
        self.kept_playbooks: dict[str, StoredPlaybook] = {}
        self.kept_records: dict[str, SkillRecord] = {}
        self.is_broken = False
        self.asked = 0

    async def playbooks(self) -> Sequence[StoredPlaybook]:
        self.asked += 1
        if self.is_broken:
            raise StorageFull("the disk is full")
        return [self.kept_playbooks[name] for name in sorted(self.kept_playbooks)]

    async def put_playbook(self, playbook: StoredPlaybook) -> bool:
        is_new = playbook.name not in self.kept_playbooks
        self.kept_playbooks[playbook.name] = playbook
        return is_new

    async def remove_playbook(self, name: str) -> bool:
        return self.kept_playbooks.pop(name, None) is not None

    async def records(self) -> Sequence[SkillRecord]:
        if self.is_broken:
            raise StorageFull("the disk is full")
        return [self.kept_records[name] for name in sorted(self.kept_records)]

    async def put_record(self, record: SkillRecord) -> None:
        self.kept_records[record.name] = record

    async def remove_record(self, name: str) -> bool:
        return self.kept_records.pop(name, None) is not None
