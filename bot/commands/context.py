"""What `/context` says: the last prompt of a conversation in a few lines, for a phone.

Guests may ask too: it is their own conversation, nothing is done and no model called. But only
sizes and names are told to them, as in a group. Built by `bot.app`, called by `bot.commands.table`.
"""

from __future__ import annotations

from agent.trace.inspect import Bill, PromptView
from agent.trace.sent import Where
from bot.commands.prompt_messages import broke_words, counted_words, cut_words, money, percent
from bot.commands.prompts import Prompts
from memory.records.messages import IncomingMessage, Role
from memory.records.rows import Person

# --- prompt words -------------------------------------------------------------------------------
#
# How sizes, money and shares of a prompt are said to a person: one wording for chat and terminal.
#
# Called by `bot.commands.prompts` and `bot.cli.prompt`; loads nothing.


BIGGEST = 5
"""Parts that are named one by one."""


NOTHING_RECORDED = (
    "Nothing is recorded of what went to the model in this conversation. It is noted with each "
    "answer, and kept for some time (trace.keep_days)."
)


class ContextCommand:
    """What `/context` says (`bot.commands.services.TellsContext`)."""

    def __init__(self, prompts: Prompts) -> None:
        self._prompts = prompts

    async def tell(self, message: IncomingMessage, person: Person) -> str:
        """The last prompt of this conversation, in a few lines."""
        view = await self._prompts.last(message.address.key)
        if view is None:
            return NOTHING_RECORDED
        _, costs = await self._prompts.billed(view)
        own = not message.is_group and view.person_id == person.id
        return context_text(view, costs, detailed=own and person.role is not Role.GUEST)


def context_text(view: PromptView, costs: Bill | None, *, detailed: bool) -> str:
    """Short lines for a phone. Without `detailed` names and sizes alone: in a group, and for
    guests, nobody is told what things are from, why they were picked, or what they cost."""
    paragraphs = [
        f"**{view.tokens:,} tokens went to the model** (estimated), "
        f"{percent(view.fullness)} of what it can take ({view.window:,}).",
        "\n".join(_biggest(view)),
        _cache(view, detailed=detailed),
        _left_out(view),
    ]
    if detailed:
        paragraphs += [_picked(view), _paid(view, costs)]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _biggest(view: PromptView) -> list[str]:
    rows = sorted(view.rows, key=lambda row: -row.tokens)
    lines = [_part(row.name, row.tokens, view) for row in rows[:BIGGEST]]
    if rest := rows[BIGGEST:]:
        parts = "1 smaller part" if len(rest) == 1 else f"{len(rest)} smaller parts"
        lines.append(_part(parts, sum(row.tokens for row in rest), view))
    return lines


def _part(name: str, tokens: int, view: PromptView) -> str:
    return f"- {name}: {tokens:,} ({percent(tokens / view.tokens)})"


def _cache(view: PromptView, *, detailed: bool) -> str:
    broke = view.broke if detailed else view.broke.partition(":")[0]
    follows = [row.name for row in view.rows if row.where is Where.BLOCK]
    words = broke_words(broke, is_first=view.is_first, follows=follows)
    if view.is_first:
        return words
    return f"A cache can serve {percent(view.cacheable)} of it. {words}"


def _left_out(view: PromptView) -> str:
    lines = [f"- {cut_words(cut.layer, cut.tokens_before, cut.tokens_after)}" for cut in view.cuts]
    return "\n".join(["Cut:", *lines]) if lines else ""


def _picked(view: PromptView) -> str:
    lines = [f"- {name}: {why}" for name, why in view.picked]
    return "\n".join(["Picked for this message:", *lines]) if lines else ""


def _paid(view: PromptView, costs: Bill | None) -> str:
    lines = []
    if usage := view.usage:
        lines.append(counted_words(view.tokens, usage.prompt, usage.cached))
    if costs is None:
        lines.append("What it cost is not known: the model is in no price table.")
    elif costs.counted is not None:
        answers = "its answer" if len(view.requests) == 1 else f"{len(view.requests)} requests"
        lines.append(f"It cost {money(costs.counted)} with {answers}.")
    else:
        lines.append(
            f"It costs about {money(costs.whole)}, with a cache {money(costs.with_cache)}."
        )
    return "\n".join(lines)
