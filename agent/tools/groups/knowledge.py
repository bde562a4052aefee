"""The group `knowledge`: documents that are saved to be looked things up in.

In a private chat they are the person's alone; in a group, those that were saved there. Their text
is somebody else's, whoever saved it, and never an instruction.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated

from pydantic import Field

from agent.files.extract import (
    BYTES_MAX,
    READABLE,
    DocumentKind,
    FileReader,
    FileText,
    kind_of_name,
)
from agent.prompt.templates import harmless
from agent.tools.groups.memory import NOTHING_HERE, PersonContext
from agent.tools.tool import Caller, Effect, Needs, Trust, others_in_groups, tool
from agent.tools.workspace import Workspace
from memory.records.errors import Permanent
from memory.records.facts import Document, whose
from memory.records.text import one_line
from memory.search.documents import SqliteDocuments

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


class KnowledgeTools:
    """The tools of this group."""

    def __init__(
        self,
        documents: SqliteDocuments,
        workspace: Workspace,
        household: PersonContext,
        *,
        reader: FileReader | None = None,
    ) -> None:
        self._documents = documents
        self._workspace = workspace
        self._household = household
        self._reader = reader or FileReader()

    # The same name is replaced, so it may be run again.
    @tool(
        "knowledge",
        Effect.PERSON,
        redo="idempotent",
        needs=Needs(risk="it is remembered for good, and becomes part of later prompts"),
        timeout_s=SAVE_TIMEOUT_S,
        status="saving a document …",
        description=f"Save a document ({READABLE}) to look things up in later. Give a path, or a "
        "text and a name; the same name is replaced.",
    )
    async def save_document(
        self,
        caller: Caller,
        path: Annotated[str, Field(description="a file of the workspace")] = "",
        text: Annotated[
            str, Field(max_length=TEXT_CHARS_MAX, description="instead of a path")
        ] = "",
        name: Annotated[
            str,
            Field(max_length=NAME_CHARS_MAX, description="what it is called; empty: as the file"),
        ] = "",
    ) -> str:
        path = path.strip()
        called = _called(path, text, name.strip())
        await self._household.check_writable(caller)
        read = await self._read(path, text, called, caller)
        saved = await self._documents.save(
            whose(caller.person_id, caller.address, is_group=caller.is_group),
            name=called,
            kind=read.kind,
            source=path or _SPOKEN,
            text=read.text,
        )
        where = "for everybody in this chat" if caller.is_group else "for this person alone"
        note = f" Note: {read.note}." if read.note else ""
        return harmless(f"Saved {_shown(saved)}, {where}.{note}")

    async def _read(self, path: str, text: str, name: str, caller: Caller) -> FileText:
        if not path:
            kind = kind_of_name(name)
            kind = kind if kind in _AS_TEXT else DocumentKind.TEXT
            return FileText(text=text, kind=kind)
        content = await asyncio.to_thread(self._workspace.read, path, caller, bytes_max=BYTES_MAX)
        return await self._reader.read(path, content)

    @tool("knowledge", Effect.NONE, trust=Trust.UNTRUSTED, status="looking into the documents …")
    async def search_documents(
        self,
        caller: Caller,
        query: Annotated[str, Field(min_length=1, max_length=QUERY_CHARS_MAX)],
        limit: Annotated[int, Field(ge=1, le=FOUND_MAX, description="passages at most")] = 5,
    ) -> str:
        """Look something up in the saved documents: the passages that fit, best first."""
        if await self._household.is_off(caller):
            return NOTHING_HERE
        of = whose(caller.person_id, caller.address, is_group=caller.is_group)
        found = await self._documents.search(of, query, k=limit)
        if found:
            return "\n\n".join(
                f"[from {_quoted(chunk.document)}]\n{chunk.text.strip()}" for chunk in found
            )
        if not await self._documents.list(of):
            return "No documents are saved here."
        return "Nothing in the saved documents fits that."

    @tool("knowledge", Effect.NONE, trust=others_in_groups, status="looking into the documents …")
    async def list_documents(self, caller: Caller) -> str:
        """List the saved documents, with size and day."""
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
        told = [f"{datetime.fromtimestamp(document.saved_ms / 1000, zone):%Y-%m-%d}"]
        if document.whose.person_id != caller.person_id:
            name = self._household.name_of(document.whose.person_id)
            told.append(f"by {one_line(name) or 'somebody else'}")
        source = f", from {one_line(document.source)}" if document.source else ""
        return harmless(f"- {_shown(document)}, saved {' '.join(told)}{source}")

    # Run again, it finds the document gone.
    @tool(
        "knowledge",
        Effect.PERSON,
        redo="idempotent",
        needs=Needs(risk="it removes what was saved, and cannot be undone"),
        status="removing a document …",
    )
    async def remove_document(
        self,
        caller: Caller,
        name: Annotated[str, Field(min_length=1, max_length=NAME_CHARS_MAX)],
    ) -> str:
        """Remove a saved document; the file that it was made from stays."""
        await self._household.check_writable(caller)
        of = whose(caller.person_id, caller.address, is_group=caller.is_group)
        removed = await self._documents.remove(of, name)
        if removed is None:
            saved = await self._documents.list(of)
            if any(document.name == " ".join(name.split()) for document in saved):
                raise KnowledgeRefused(
                    f"{_quoted(name)} was saved by somebody else, and only they can remove it"
                )
            raise KnowledgeRefused(
                f"there is no document {_quoted(name)} here (any more); list_documents names them"
            )
        return harmless(f"Removed {_shown(removed)}.")


def _called(path: str, text: str, name: str) -> str:
    """The document's name. Raises KnowledgeRefused for arguments that do not say one thing."""
    if bool(path) == bool(text.strip()):
        raise KnowledgeRefused("give either a path or a text; nothing was saved")
    if not path and not name:
        raise KnowledgeRefused("a text needs a name to be saved under; nothing was saved")
    return name or path.rstrip("/").rpartition("/")[2]


def _shown(document: Document) -> str:
    return (
        f"{_quoted(document.name)} ({document.kind}, {document.chars:,} characters, "
        f"{document.chunks:,} passage{'s' * (document.chunks != 1)})"
    )


def _quoted(name: str) -> str:
    return f"'{one_line(name, chars_max=NAME_CHARS_MAX)}'"
