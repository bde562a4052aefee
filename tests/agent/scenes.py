"""Scenes for tests of the prompt: an ordinary one, and one in which every layer has something."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from agent.prompt.scene import DailyNote, Instruction, Scene
from agent.prompt.templates import PromptLibrary
from agent.skills.skill import Skill, SkillPlace
from memory.records.facts import Chunk, Coming, Exchange, Fact, Recalled
from memory.records.messages import ConversationId, IncomingMessage, PersonId, TurnInput
from tests.agent.house import OWNER, Somebody

ZONE = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 8, 3, 12, 0, tzinfo=ZONE)


def turn_of(by: Somebody, text: str = "") -> TurnInput:
    message = IncomingMessage(
        address=by.address,
        message_id="1",
        sender_id=by.id,
        sender_name=by.name,
        text=text,
        is_group=by.is_group,
        chat_title=by.title,
    )
    return TurnInput(
        message=message,
        conversation=ConversationId("c1"),
        person_id=PersonId(by.id),
        role=by.role,
        person_name=by.name,
    )


def scene(by: Somebody, library: PromptLibrary, **more: Any) -> Scene:
    """What the bot of a fresh home sees."""
    base, source = library.base()
    made = Scene(
        now=NOW,
        zone="Europe/Berlin",
        turn=turn_of(by),
        base=base,
        base_source=source,
        texts=library.texts(),
        bootstrap=library.bootstrap(turn_of(by)),
        version="1.2.3",
        system="Linux",
    )
    return replace(made, **more)


def skill(name: str, **more: Any) -> Skill:
    """A skill of the workspace."""
    made = Skill(
        name=name,
        description=f"What {name} is for.",
        text=f"1. Do the first thing of {name}.\n2. Say what came of it.",
        place=SkillPlace.WORKSPACE,
        location=f"skills/{name}/SKILL.md",
    )
    return replace(made, **more)


RECALLED = Recalled(
    profile="Name: Ada\nLanguage: en",
    facts=tuple(
        Fact(id=str(n), text=text, category=category)
        for n, (text, category) in enumerate(
            [
                ("Ada lives in Bergen.", "background"),
                ("Ada drinks tea, never coffee.", "preference"),
                ("Ada's brother is called Tom.", "contact"),
                ("Ada works on the harbour project.", "project"),
                ("Ada decided to sell the boat.", "decision"),
            ]
        )
    ),
    exchanges=(
        Exchange(
            id="7",
            when=datetime(2026, 7, 30, 9, 0, tzinfo=ZONE),
            said="Which colour did we say for the boat?",
            answered="Green, with a white line.",
        ),
    ),
    chunks=(Chunk(id="3", text="The berth costs 40 a month.", document="harbour.pdf"),),
    pins=("Wants prices in crowns",),
    recommendations=("read_file needs a path below files/",),
    coming=(
        Coming(id="e1", when=datetime(2026, 8, 4, 10, 0, tzinfo=ZONE), text="Dentist"),
        Coming(id="e2", when=datetime(2026, 8, 5, 18, 30, tzinfo=ZONE), text="Choir"),
    ),
    summary="Ada asked about berths; she decided on the one in the old harbour.",
)


def full(by: Somebody = OWNER, *, library: PromptLibrary, **more: Any) -> Scene:
    """A scene in which every layer has something to say."""
    made = scene(
        by,
        library,
        listed=(skill("code-review"), skill("summarize", place=SkillPlace.SHIPPED)),
        unlisted=3,
        relevant=(skill("summarize", place=SkillPlace.SHIPPED),),
        playbooks=(skill("harbour", priority=5), skill("boats")),
        instructions=(Instruction(text="Answer in crowns.", source="rule: prices"),),
        servers=("mail – reads and writes the mailbox",),
        notes="The boat is called Vesla.",
        notes_source="memory/MEMORY.md",
        daily_notes=(
            DailyNote(day=date(2026, 8, 3), text="Call the harbour master."),
            DailyNote(day=date(2026, 8, 2), text="Painted the keel."),
        ),
        recalled=RECALLED,
        direct=True,
        reminder_due=True,
    )
    texts = {**library.texts(), "reminder": "Keep your word."}
    return replace(made, texts=texts, **more)
