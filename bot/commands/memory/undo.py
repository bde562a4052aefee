"""What `/undo` does: takes back what the last turn or command stored, and says what it cannot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from agent.tools.groups.files import ProtectedFiles
from agent.tools.tool import Caller
from agent.tools.workspace import PathRefused
from bot.people.approval_messages import TOOLS
from memory.records.erasure import Done, FormerFile, LastTurn, digest_of, loss_of
from memory.records.facts import StoredFact, Whose, whose
from memory.records.messages import ConversationId, RunId
from memory.service import MemoryService

if TYPE_CHECKING:
    from bot.commands.command import CommandCall, Tools

WITHIN = timedelta(hours=24)

NOTHING = "There is nothing to take back: no answer of the last 24 hours here changed anything."
NOT_AGAIN = (
    "What can be taken back of the last answer that changed something is taken back already; I do "
    "not go further back by myself. `/memory` shows what I know, and can change any of it."
)
NOT_AGAIN_TYPED = (
    "What you had me remember last is taken back already; I do not go further back by myself. "
    "`/memory` shows what I know, and can change any of it."
)
CANNOT = "What I cannot take back:"
TAKEN_BACK_BY_STORES = frozenset({"store_fact", "update_fact", "update_profile"})
"""Tools of which everything is taken back: facts and profile know what they were before."""

_SAID_OF = {
    "forget_fact": "something was forgotten, which is for good",
    "append_notes": "something was added to your notes, where you can take it out yourself",
    "write_file": "a file was written",
    "append_file": "something was added to a file",
    "edit_file": "a file was changed",
    "send_message": "a message was sent to another chat",
    "send_file": "a file was sent",
    "react": "a reaction was put under a message",
    "save_document": "a document was saved; `remove_document` takes it away",
}
_SAID_OF_EFFECTS = {
    "workspace": "files of the workspace were changed",
    "person": "something of yours was changed",
    "outside": "something was done outside",
}
TEXT_CHARS = 200


async def undo(tools: Tools, asked: CommandCall) -> str:
    """Take back what the newest turn here that changed something stored for this person.

    Raise StorageError. After a crash in the middle it may be asked for again.
    """
    message, person, memory = asked.message, asked.person, tools.memory
    since = tools.clock.now() - WITHIN
    turn = await memory.turns.last(
        person.id, message.address.key, since_ms=int(since.timestamp() * 1000)
    )
    if turn is None:
        return NOTHING
    of = whose(person.id, message.address, is_group=message.is_group)
    await memory.turns.undone([turn.run_id])
    # Who asked for the undo has thereby agreed to what it writes.
    caller = Caller(
        person_id=person.id,
        role=person.role,
        address=message.address,
        conversation=ConversationId(""),
        run_id=RunId(""),
        is_group=message.is_group,
        agreed=True,
    )
    taken = await _taken_back(memory, turn, of, is_group=message.is_group)
    put_back, left = await _files_put_back(memory, ProtectedFiles(tools.workspace), turn, caller)
    taken += put_back
    # What a crash left of it, though, is taken back now.
    if turn.is_undone and not taken:
        return NOT_AGAIN_TYPED if turn.typed else NOT_AGAIN
    return _told(turn, taken, left, tools.zone(person))


async def _taken_back(
    memory: MemoryService, turn: LastTurn, of: Whose, *, is_group: bool
) -> list[str]:
    lines: list[str] = []
    for run_id in turn.runs:
        gone, back = await memory.facts.undo(of, run_id)
        lines += [f"- no longer known: {_quoted(fact)}" for fact in gone]
        lines += [f"- known again: {_quoted(fact)}" for fact in back]
        if not is_group:
            for change in await memory.profiles.undo(of.person_id, run_id):
                now = "empty" if change.old is None else str(change.old)[:TEXT_CHARS]
                lines.append(f"- profile: {change.path} is {now} again")
    return lines


async def _files_put_back(
    memory: MemoryService, files: ProtectedFiles, turn: LastTurn, caller: Caller
) -> tuple[list[str], dict[str, str]]:
    """Put files back as they were before the turn. Return a line for each, and for those left
    alone, by path, a line that says why."""
    back: list[str] = []
    left = {one.file: "" for one in turn.done if one.file}
    for file in await memory.former_files.of(turn.runs):
        former = _Former(file)
        try:
            await files.change(file.path, caller, former, missing=b"")
        except PathRefused as refused:
            left[file.path] = f"- {refused}"
            continue
        if former.is_other:
            left[file.path] = f"- {_coded(file.path)} has been changed since, so it stays as it is"
            continue
        await memory.former_files.drop(file)
        left.pop(file.path, None)
        if former.is_back:
            lines = loss_of(file.former, "").of
            many = "1 line" if lines == 1 else f"{lines:,} lines"
            back.append(f"- {_coded(file.path)} says what it said before again ({many})")
    return back, left


def _told(turn: LastTurn, taken: Sequence[str], left: Mapping[str, str], zone: tzinfo) -> str:
    at = datetime.fromtimestamp(turn.ended_ms / 1000, zone)
    blocks = []
    if taken:
        what = "what you had me keep at" if turn.typed else "the answer of"
        blocks.append("\n".join([f"Taken back from {what} {at:%H:%M}:", *taken]))
    done = [one for one in turn.done if not one.file or left.get(one.file) == ""]
    cannot = [*filter(None, left.values()), *(f"- {one}" for one in _cannot(done))]
    cannot = list(dict.fromkeys(cannot))
    if cannot:
        head = CANNOT if taken else f"Of the answer of {at:%H:%M} I can take nothing back:"
        blocks.append("\n".join([head, *cannot]))
    return "\n\n".join(blocks) or NOTHING


class _Former:
    """Puts a file's earlier text back, if the file is still as the turn left it."""

    def __init__(self, file: FormerFile) -> None:
        self._file = file
        self.is_back = self.is_other = False

    def __call__(self, content: bytes) -> bytes | None:
        former = self._file.former.encode()
        is_left = digest_of(content.decode(errors="replace")) == self._file.becomes
        self.is_back = is_left and content != former
        self.is_other = not is_left and content != former
        return former if self.is_back else None


def _coded(path: str) -> str:
    return f"`{path.replace('`', chr(39))}`"


def _cannot(done: Iterable[Done]) -> Iterable[str]:
    for one in done:
        if one.tool in TAKEN_BACK_BY_STORES:
            continue
        if one.tool in _SAID_OF:
            yield f"{_SAID_OF[one.tool]} (`{one.tool}`)"
        elif one.tool:
            what = TOOLS.get(one.tool, _SAID_OF_EFFECTS.get(one.effect, "something was done"))
            yield f"{what} (`{one.tool.replace('`', '')[:64]}`)"
        else:
            yield _SAID_OF_EFFECTS.get(one.effect, "something was done")


def _quoted(fact: StoredFact) -> str:
    return f"{fact.key} “{fact.text[:TEXT_CHARS]}”"
