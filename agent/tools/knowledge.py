"""The group `knowledge`: documents that are saved to be looked things up in.

In a private chat they are the person's alone; in a group, those that were saved there. Their text
is somebody else's, whoever saved it, and never an instruction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, tzinfo

from pydantic import Field

from agent.files.extract import (
    BYTES_MAX,
    READABLE,
    DocumentKind,
    FileReader,
    FileText,
    kind_of_name,
)
from agent.prompt.scene import one_line
from agent.prompt.templates import harmless
from agent.tools.arguments import Arguments
from agent.tools.profile import NOTHING_HERE, Household
from agent.tools.tool import Caller, Effect, Needs, Tool, ToolCard, Trust
from agent.tools.workspace import Workspace
from memory.records.errors import Permanent
from memory.records.facts import Chunk, Document, Documents, whose

TEXT_CHARS_MAX = 200_000
"""Of a text that a model writes out; a longer one is a file."""
NAME_CHARS_MAX = 120
QUERY_CHARS_MAX = 1_000
FOUND_MAX = 10
LISTED_MAX = 100
SAVE_TIMEOUT_S = 120.0
_SPOKEN = "what was said or read in the chat"
_AS_TEXT = frozenset({DocumentKind.MARKDOWN, DocumentKind.TABLE})


class KnowledgeRefused(Permanent):
    """What cannot be saved or found like that; the text says why, for the model."""


def knowledge_tools(
    documents: Documents,
    workspace: Workspace,
    household: Household,
    *,
    reader: FileReader | None = None,
) -> tuple[Tool, ...]:
    """All tools of this group."""
    return (
        SaveDocument(documents, workspace, household, reader or FileReader()),
        SearchDocuments(documents, household),
        ListDocuments(documents, household),
        RemoveDocument(documents, household),
    )


# --- save_document -------------------------------------------------------------------------------


class SaveDocumentArguments(Arguments):
    """A file of the workspace, or a text with a name."""

    path: str = Field(default="", description="a file of the workspace")
    text: str = Field(default="", max_length=TEXT_CHARS_MAX, description="instead of a path")
    name: str = Field(
        default="", max_length=NAME_CHARS_MAX, description="what it is called; empty: as the file"
    )


class SaveDocument:
    """Saves a file or a text in passages. The same name is replaced, so it may be run again."""

    card = ToolCard(
        name="save_document",
        description=(
            f"Save a document ({READABLE}) to look things up in later. Give a path, or a text "
            "and a name; the same name is replaced."
        ),
        arguments=SaveDocumentArguments,
        group="knowledge",
        effect=Effect.PERSON,
        redo="idempotent",
        trust=Trust.OURS,
        timeout_s=SAVE_TIMEOUT_S,
        status="saving a document …",
    )

    def __init__(
        self, documents: Documents, workspace: Workspace, household: Household, reader: FileReader
    ) -> None:
        self._documents = documents
        self._workspace = workspace
        self._household = household
        self._reader = reader

    def needs(self, arguments: SaveDocumentArguments, caller: Caller) -> Needs:
        """See SaysNeeds: its passages stand in later prompts, so in a tainted turn it is asked
        about."""
        return Needs(risk="it is remembered for good, and becomes part of later prompts")

    async def run(self, arguments: SaveDocumentArguments, caller: Caller) -> str:
        """What was saved, and how large it is. Raises AssistantError."""
        name = _called(arguments)
        await self._household.check_writable(caller)
        read = await self._read(arguments, name, caller)
        saved = await self._documents.save(
            whose(caller.person_id, caller.address, is_group=caller.is_group),
            name=name,
            kind=read.kind,
            source=arguments.path.strip() or _SPOKEN,
            text=read.text,
        )
        where = "for everybody in this chat" if caller.is_group else "for this person alone"
        note = f" Note: {read.note}." if read.note else ""
        return harmless(f"Saved {_shown(saved)}, {where}.{note}")

    async def _read(self, arguments: SaveDocumentArguments, name: str, caller: Caller) -> FileText:
        path = arguments.path.strip()
        if not path:
            kind = kind_of_name(name)
            return FileText(
                text=arguments.text, kind=kind if kind in _AS_TEXT else DocumentKind.TEXT
            )
        content = await asyncio.to_thread(self._workspace.read, path, caller, bytes_max=BYTES_MAX)
        return await self._reader.read(path, content)


def _called(arguments: SaveDocumentArguments) -> str:
    """The document's name. Raises KnowledgeRefused for arguments that do not say one thing."""
    path, name = arguments.path.strip(), arguments.name.strip()
    if bool(path) == bool(arguments.text.strip()):
        raise KnowledgeRefused("give either a path or a text; nothing was saved")
    if not path and not name:
        raise KnowledgeRefused("a text needs a name to be saved under; nothing was saved")
    return name or path.rstrip("/").rpartition("/")[2]


# --- search_documents ----------------------------------------------------------------------------


class SearchDocumentsArguments(Arguments):
    """What to look for."""

    query: str = Field(min_length=1, max_length=QUERY_CHARS_MAX)
    limit: int = Field(default=5, ge=1, le=FOUND_MAX, description="passages at most")


class SearchDocuments:
    """The passages that fit, each with its document."""

    card = ToolCard(
        name="search_documents",
        description="Look something up in the saved documents: the passages that fit, best first.",
        arguments=SearchDocumentsArguments,
        group="knowledge",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.UNTRUSTED,
        status="looking into the documents …",
    )

    def __init__(self, documents: Documents, household: Household) -> None:
        self._documents = documents
        self._household = household

    async def run(self, arguments: SearchDocumentsArguments, caller: Caller) -> str:
        """Passages under the names of their documents."""
        if await self._household.is_off(caller):
            return NOTHING_HERE
        of = whose(caller.person_id, caller.address, is_group=caller.is_group)
        found = await self._documents.search(of, arguments.query, k=arguments.limit)
        if found:
            return "\n\n".join(map(_passage, found))
        if not await self._documents.list(of):
            return "No documents are saved here."
        return "Nothing in the saved documents fits that."


def _passage(chunk: Chunk) -> str:
    return f"[from {_quoted(chunk.document)}]\n{chunk.text.strip()}"


# --- list_documents ------------------------------------------------------------------------------


class ListDocumentsArguments(Arguments):
    """Nothing to say."""


class ListDocuments:
    """What is saved here."""

    card = ToolCard(
        name="list_documents",
        description="List the saved documents, with size and day.",
        arguments=ListDocumentsArguments,
        group="knowledge",
        effect=Effect.NONE,
        redo="repeat",
        trust=Trust.UNTRUSTED,
        status="looking into the documents …",
    )

    def __init__(self, documents: Documents, household: Household) -> None:
        self._documents = documents
        self._household = household

    def trust(self, caller: Caller) -> Trust:
        """See SaysTrust: in a group it may be others who named them."""
        return Trust.UNTRUSTED if caller.is_group else Trust.OURS

    async def run(self, arguments: ListDocumentsArguments, caller: Caller) -> str:
        """One line a document."""
        if await self._household.is_off(caller):
            return NOTHING_HERE
        of = whose(caller.person_id, caller.address, is_group=caller.is_group)
        saved = await self._documents.list(of)
        lines = [self._line(document, caller) for document in saved[:LISTED_MAX]]
        if len(saved) > LISTED_MAX:
            lines.append(f"[the first {LISTED_MAX} of {len(saved):,} by name]")
        return "\n".join(lines) or "No documents are saved here."

    def _line(self, document: Document, caller: Caller) -> str:
        zone = self._household.zone_of(caller.person_id)
        told = [_day(document.saved_ms, zone)]
        if document.whose.person_id != caller.person_id:
            name = self._household.name_of(document.whose.person_id)
            told.append(f"by {one_line(name) or 'somebody else'}")
        source = f", from {one_line(document.source)}" if document.source else ""
        return harmless(f"- {_shown(document)}, saved {' '.join(told)}{source}")


# --- remove_document -----------------------------------------------------------------------------


class RemoveDocumentArguments(Arguments):
    """Which one."""

    name: str = Field(min_length=1, max_length=NAME_CHARS_MAX)


class RemoveDocument:
    """Removes a document that the person saved here. Run again, it finds it gone."""

    card = ToolCard(
        name="remove_document",
        description="Remove a saved document; the file that it was made from stays.",
        arguments=RemoveDocumentArguments,
        group="knowledge",
        effect=Effect.PERSON,
        redo="idempotent",
        trust=Trust.OURS,
        status="removing a document …",
    )

    def __init__(self, documents: Documents, household: Household) -> None:
        self._documents = documents
        self._household = household

    def needs(self, arguments: RemoveDocumentArguments, caller: Caller) -> Needs:
        """See SaysNeeds: it cannot be undone, so in a tainted turn it is asked about."""
        return Needs(risk="it removes what was saved, and cannot be undone")

    async def run(self, arguments: RemoveDocumentArguments, caller: Caller) -> str:
        """What went. Raises KnowledgeRefused."""
        await self._household.check_writable(caller)
        of = whose(caller.person_id, caller.address, is_group=caller.is_group)
        removed = await self._documents.remove(of, arguments.name)
        if removed is None:
            raise KnowledgeRefused(_not_there(arguments.name, await self._documents.list(of)))
        return harmless(f"Removed {_shown(removed)}.")


def _not_there(name: str, saved: Sequence[Document]) -> str:
    if any(document.name == " ".join(name.split()) for document in saved):
        return f"{_quoted(name)} was saved by somebody else, and only they can remove it"
    return f"there is no document {_quoted(name)} here (any more); list_documents names them"


# --- words ---------------------------------------------------------------------------------------


def _shown(document: Document) -> str:
    return (
        f"{_quoted(document.name)} ({document.kind}, {document.chars:,} characters, "
        f"{document.chunks:,} passage{'s' * (document.chunks != 1)})"
    )


def _quoted(name: str) -> str:
    return f"'{one_line(name, chars_max=NAME_CHARS_MAX)}'"


def _day(ms: int, zone: tzinfo) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, zone):%Y-%m-%d}"
