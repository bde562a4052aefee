"""What the model is sent: how large the first request is, and how much of it stays for the next."""

import json
import statistics
from itertools import pairwise
from typing import Any

from tests.bench.bench import Bench, fresh_stage
from tests.bench.figures import PRODUCT, Figure
from tests.bench.stage import OWNER

BYTES_PER_TOKEN = 4.0
PREFIX_TURNS = 20
WINDOW_TURNS = 100


def measure_words(bench: Bench) -> None:
    """On a fresh home, in the conversation's first turns and past the history's window."""
    turns = PREFIX_TURNS if bench.quick else WINDOW_TURNS
    with fresh_stage(PRODUCT) as stage:
        bench.say(f"{turns} requests on a fresh home")
        stage.ready()
        sent = stage.telegram.count("sendMessage")
        stage.telegram.order("message", chat_id=OWNER, text="hello")
        stage.telegram.wait("sendMessage", more_than=sent)
        stage.talk(chats=1, rounds=turns)
        requests = stage.model.order("requests")
    hello = len(_dumped(requests[0]))
    kept = [_kept(one, next_) for one, next_ in pairwise(requests)]
    tools = len(requests[0].get("tools") or ())
    bench.add(
        Figure(
            name="first “hello”",
            unit="kB",
            values={PRODUCT: hello / 1000},
            must=10,
            note=f"{tools} tools, {len(_dumped(requests[0].get('tools', []))):,} bytes of it",
        )
    )
    tokens = hello / BYTES_PER_TOKEN
    bench.add(
        Figure(
            name="  tokens",
            unit="≈",
            values={PRODUCT: tokens},
            must=2500,
            digits=0,
            note=f"{BYTES_PER_TOKEN:.0f} bytes each",
        )
    )
    early = statistics.fmean(kept[:PREFIX_TURNS])
    whole = f"worst {min(kept[:PREFIX_TURNS]):.3f}; mean of {len(kept)} turns"
    bench.add(
        Figure(
            name="prompt prefix kept, next turn",
            unit="share",
            values={PRODUCT: early},
            must=1,
            at_least=True,
            digits=3,
            note=f"{whole} {statistics.fmean(kept):.3f}, worst {min(kept):.3f}",
        )
    )


def _kept(former: dict[str, Any], following: dict[str, Any]) -> float:
    """Of what an append-only transcript would keep (all of it), the share that stayed.

    Providers put tools before messages: if those change, nothing is kept.
    """
    if _dumped(former.get("tools")) != _dumped(following.get("tools")):
        return 0.0
    before = _dumped(former["messages"])[:-1]
    return _same_bytes(before, _dumped(following["messages"])) / len(before)


def _same_bytes(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    differing = (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differing, min(len(one), len(other)))


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
