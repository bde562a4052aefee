"""The moment and the place: what changes from turn to turn."""

from __future__ import annotations

from agent import headings
from agent.request import PromptLayer, Stability
from agent.scene import Scene, one_line


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
