"""How sizes, money and shares of a prompt are said to a person: one wording for chat and terminal.

Called by `bot.commands.prompts` and `bot.cli.prompt`; loads nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

CACHE_WORDS = {
    "cached": "stands in the request before, so that a provider's cache can serve it",
    "partly": "its older part can be served by the cache",
    "behind": "unchanged, but behind a part that changed: read anew",
    "changed": "stood in the request before with another text",
    "new": "was not in the request before",
}


"""What each cache state means."""


PRICE_UNKNOWN = "price unknown"


def money(dollars: float) -> str:
    """Dollars with two figures that count, or cents once there are some: $0.00043, $1.20."""
    if dollars <= 0:
        return "$0"
    if dollars >= 0.995:
        return f"${dollars:,.2f}"
    decimals = 2
    while decimals < 12 and dollars * 10 ** (decimals - 1) < 0.995:
        decimals += 1
    return f"${dollars:.{decimals}f}"


def percent(share: float) -> str:
    """A share from 0 to 1: 42 %, 1.7 %, below that 0.03 %."""
    value = share * 100
    if value == 0 or value >= 9.95:
        return f"{value:.0f} %"
    return f"{value:.1f} %" if value >= 0.095 else f"{value:.2f} %"


def cut_words(layer: str, before: int, after: int) -> str:
    """What had no room."""
    what = f"{before:,} → {after:,} tokens" if after else f"{before:,} tokens, left out"
    return f"{layer} {what}: no room"


def broke_words(broke: str, *, is_first: bool, follows: Sequence[str] = ()) -> str:
    """What became of the prefix, as a sentence. `follows` names what stands behind it."""
    if is_first:
        return "No request before it is recorded in this conversation, so nothing is cached yet."
    if broke:
        return f"What broke the prefix: {broke}."
    behind = ""
    if follows:
        verb = (
            "is not in the prefix: it follows"
            if len(follows) == 1
            else ("are not in the prefix: they follow")
        )
        behind = f" ({', '.join(follows)} {verb})"
    return f"Nothing broke the prefix{behind}."


def counted_words(estimate: int, prompt: int, cached: int) -> str:
    """The provider's own count beside ours."""
    served = f", {cached:,} of them from its cache" if cached else ", none from its cache"
    return f"The provider counted {prompt:,} tokens{served} (estimated here: {estimate:,})."
