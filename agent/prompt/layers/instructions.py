"""Who the assistant is: the base text and the workspace's bootstrap files."""

from __future__ import annotations

from agent.prompt import templates as headings
from agent.prompt.scene import PromptKind, Scene, fill
from memory.records.languages import AUTO, language_name
from memory.records.text import one_line
from memory.records.transcript import Piece, PromptLayer, Repeat, Stability

HEAD_SHARE, TAIL_SHARE = 0.7, 0.2
"""What is kept of a bootstrap file that is too long (SPEC §5, layer 4)."""


def base(scene: Scene) -> PromptLayer:
    """Layer 1: the persona text, with `system_extra` after it where there is one.

    A persona in the person's profile replaces what the base chain chose.
    """
    persona = scene.recalled.persona_prompt.strip()
    text = persona or scene.base.strip()
    if extra := scene.texts.get("system_extra", "").strip():
        text = f"{text}\n\n{extra}"
    return PromptLayer.of(
        "base",
        text,
        source="profile: persona.system_prompt" if persona else scene.base_source,
        stability=Stability.STATIC,
        trust="owner",
    )


def bootstrap(scene: Scene) -> PromptLayer | None:
    """Layer 4: AGENTS.md, SOUL.md, ... each under its own heading."""
    pieces = []
    most = scene.bootstrap_chars_max
    for name, content in scene.bootstrap.items():
        if not (text := content.strip()):
            continue
        if len(text) > most:
            head, tail = int(most * HEAD_SHARE), int(most * TAIL_SHARE)
            left_out = f"[… {len(text) - head - tail:,} characters left out …]"
            text = f"{text[:head]}\n{left_out}\n{text[len(text) - tail :]}"
        pieces.append(Piece(heading=f"## {name}", text=text, source=name))
    if not pieces:
        return None
    return PromptLayer(
        name="bootstrap",
        pieces=tuple(pieces),
        stability=Stability.STATIC,
        trust="owner",
        cuts=True,
    )


# --- rules --------------------------------------------------------------------------------------
#
# How the assistant works: acting by tools, where it runs, what is plugged in, how it writes.


def tool_rules(scene: Scene) -> PromptLayer:
    """Layer 2: act by calling tools, claim nothing without a call."""
    return PromptLayer.of(
        "tool rules",
        scene.texts["acting"],
        source="prompts/acting.md",
        heading=headings.ACTING,
        stability=Stability.STATIC,
    )


def surroundings(scene: Scene) -> PromptLayer:
    """Layer 3: product, machine, workspace."""
    return PromptLayer.of(
        "surroundings",
        fill(scene.texts["surroundings"], VERSION=scene.version, SYSTEM=scene.system),
        source="prompts/surroundings.md",
        heading=headings.SURROUNDINGS,
        stability=Stability.STATIC,
    )


def routing(scene: Scene) -> PromptLayer | None:
    """Layer 6: a line for each plugged-in server, and when to use what."""
    if not scene.servers and not scene.listed:
        return None
    servers = "\n".join(f"- {line}" for line in scene.servers)
    return PromptLayer(
        name="routing",
        pieces=(
            Piece(text=fill(scene.texts["routing"], SERVERS=servers), source="prompts/routing.md"),
        ),
        heading=headings.ROUTING,
        stability=Stability.STATIC,
    )


def language_and_format(scene: Scene) -> PromptLayer:
    """Layer 8: the person's language, the direct reply only, the channel's formatting."""
    channel = scene.turn.message.address.channel
    return PromptLayer.of(
        "language and format",
        fill(
            scene.texts["language"],
            LANGUAGE=_language(scene),
            FORMAT=scene.texts.get(f"format_{channel}", "").strip(),
        ),
        source="prompts/language.md",
        heading=headings.LANGUAGE,
        stability=Stability.STATIC,
    )


def _language(scene: Scene) -> str:
    """Return what the person has set, else the language that is set for all, else the rule that
    goes by each message. A platform's word on it stands in only where no message says: apps are set
    to languages that their people do not write. In a group nobody's own language counts."""
    turn = scene.turn
    is_alone = not turn.message.is_group
    own = turn.language if is_alone else ""
    if chosen := language_name(own):
        return f"Reply in {chosen}."
    if scene.fixed_language and own != AUTO:
        return f"Reply in {language_name(scene.fixed_language) or scene.fixed_language}."
    rule = scene.texts["language_auto"].strip()
    hint = language_name(turn.language_hint) if is_alone else ""
    return f"{rule} Where no words of theirs show one, write in {hint}." if hint else rule


# --- moment -------------------------------------------------------------------------------------
#
# The moment and the place: what changes from turn to turn.


def date_and_time(scene: Scene) -> PromptLayer:
    """Layer 19: to the minute, in the person's zone."""
    now = scene.now
    return PromptLayer.of(
        "date and time",
        f"{now:%A}, {now:%B} {now.day}, {now.year}, {now:%H:%M} ({scene.zone})",
        source="clock",
        heading=headings.NOW,
        stability=Stability.TURN,
    )


def current_chat(scene: Scene) -> PromptLayer:
    """Layer 20: where this is said, and by whom."""
    message, turn = scene.turn.message, scene.turn
    lines = [f"channel: {message.address.channel}", f"chat_id: {message.address.chat_id}"]
    if message.address.thread_id is not None:
        lines.append(f"thread: {message.address.thread_id}")
    if message.is_group:
        lines.append("group chat: each message names its sender")
        if message.chat_title:
            lines.append(f"title: {one_line(message.chat_title)}")
    else:
        lines.append("private chat")
        if name := turn.person_name or message.sender_name:
            title = f", {one_line(message.sender_title)}" if message.sender_title else ""
            lines.append(f"user: {one_line(name)}{title}")
    return PromptLayer.of(
        "current chat",
        "\n".join(lines),
        source="channel",
        heading=headings.CHAT,
        stability=Stability.TURN,
        trust="outside",
    )


# --- request ------------------------------------------------------------------------------------
#
# What is wanted right now: how directly to answer, the task, and the owner's instructions.


def directness_and_reminder(scene: Scene) -> PromptLayer | None:
    """Layer 21: the note of reasoning control, and the reminder that comes back now and then."""
    pieces = []
    if scene.direct:
        pieces.append(Piece(text=scene.texts["directness"], source="prompts/directness.md"))
    if scene.reminder_due:
        pieces.append(Piece(text=scene.texts["reminder"], source="prompts/reminder.md"))
    if not any(piece.text.strip() for piece in pieces):
        return None
    return PromptLayer(
        name="directness and reminder",
        pieces=tuple(pieces),
        stability=Stability.TURN,
        repeat=Repeat.MOMENT,
    )


def current_task(scene: Scene) -> PromptLayer | None:
    """Layer 22: nobody is there, and the instructions are the goal."""
    if scene.kind not in {PromptKind.HEARTBEAT, PromptKind.PROACTIVE}:
        return None
    return PromptLayer.of(
        "current task",
        scene.texts["proactive"],
        source="prompts/proactive.md",
        heading=headings.TASK,
        stability=Stability.TURN,
        repeat=Repeat.MOMENT,
    )


def instruction(scene: Scene) -> PromptLayer | None:
    """Layer 23: what the force-include rules say for this request."""
    if not scene.instructions:
        return None
    return PromptLayer(
        name="instruction for this request",
        pieces=tuple(Piece(text=one.text, source=one.source) for one in scene.instructions),
        heading=headings.INSTRUCTION,
        stability=Stability.TURN,
        repeat=Repeat.MOMENT,
        trust="owner",
    )
