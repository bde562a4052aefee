"""Every class of trouble that a model can have (SPEC §8.3), through the whole bot, by both clients.

Whatever it is: the turn ends, the person reads one message, the server is not asked more often
than the retries allow, and the next turn is as if nothing had been.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.models.health import ERRORS_MAX
from bot.lab.model_script import call, named_fault
from tests.agent.models.asking import ask
from tests.bot.kit import OWNER, Rig, eventually, rigged

pytestmark = [
    # litellm's own, in what it does with each chunk that holds usage.
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
]

ATTEMPTS_MAX = 4
"""What `fallback.ModelChain` promises for one answer; fewer than what opens its breaker."""

REFUSED = "refused the request"
CLASSES = [
    ("429", ATTEMPTS_MAX, "asks for a pause"),
    ("500", ATTEMPTS_MAX, "overloaded"),
    ("502", ATTEMPTS_MAX, "overloaded"),
    ("503", ATTEMPTS_MAX, "overloaded"),
    ("529", ATTEMPTS_MAX, "overloaded"),
    ("drop", ATTEMPTS_MAX, "cannot be reached"),
    ("reset", ATTEMPTS_MAX, "cannot be reached"),
    ("hold", ATTEMPTS_MAX, "took too long"),
    ("stall", ATTEMPTS_MAX, "took too long"),
    ("cut", ATTEMPTS_MAX, "broke off"),
    ("bad_chunk", ATTEMPTS_MAX, "broke off"),
    ("stream_reset", ATTEMPTS_MAX, "broke off"),
    ("401", 1, "does not accept my key"),
    ("402", 1, "no credit"),
    ("insufficient_quota", 1, "no credit"),
    ("context", 1, "more text than the model can take"),
    ("content_filter", 1, "filter"),
    ("400", 1, REFUSED),
    ("empty", 2, "returned nothing"),
    ("reasoning_only", 2, "returned nothing"),
]
"""The stand-in's fault, the requests that it costs while it lasts, and what the owner reads."""


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rigged(tmp_path) as rig:
        yield rig


@pytest.fixture(params=["direct", "litellm"])
async def client(request: pytest.FixtureRequest, rig: Rig) -> str:
    """The setting; litellm is loaded before, as that takes longer than some limits here."""
    chosen: str = request.param
    rig.set(llm__client=chosen)
    if chosen == "litellm":
        await warm(rig)
    return chosen


async def warm(rig: Rig) -> None:
    from agent.models.litellm import LiteLLM

    async with LiteLLM("openai/lab-model", api_base=rig.model.api_base, api_key="k") as model:
        await ask(model)


@pytest.mark.case("CO-05")
@pytest.mark.parametrize(("fault", "requests", "read"), CLASSES, ids=[c[0] for c in CLASSES])
async def test_trouble_costs_one_message_and_the_next_turn_is_fine(
    rig: Rig, client: str, fault: str, requests: int, read: str
) -> None:
    is_slow = fault in ("hold", "stall")
    rig.set(llm__timeout_s=0.5 if is_slow else 20)
    before = len(rig.model.requests)

    # All attempts of a model have a minute by this clock, also where the machine is busy.
    async with rig.running(OWNER, hurry=5 if is_slow else 50) as bot:
        rig.model.fault("chat", action=named_fault(fault), times=None)
        rig.says("hello")
        await eventually(lambda: rig.texts())
        await rig.quiet(bot)
        asked = len(rig.model.requests) - before
        rig.model.clear_faults()
        rig.model.say("Well again.")
        rig.says("and now?")
        await eventually(lambda: well_again(fault, client) in rig.texts())
        await rig.quiet(bot)

    first, *others = rig.texts()
    print(f"\n{fault}, {client}, {asked} requests: {first}")
    assert others == [well_again(fault, client)]
    assert read in first
    assert asked == requests <= ATTEMPTS_MAX < ERRORS_MAX
    assert rig.inbox() == ["failed", "replied"]


def well_again(fault: str, client: str) -> str:
    """What the owner reads then: also that it works again, where they had to mend something."""
    is_refusal = fault in {"401", "402", "insufficient_quota"}
    name = "openai/lab-model" if client == "litellm" else "lab-model"
    return "Well again." + (f"\n\n(The model {name} works again.)" if is_refusal else "")


@pytest.mark.parametrize("arguments", ['{"path":', "[1]", '{"paht": 1}'])
async def test_a_malformed_call_is_told_to_the_model_which_may_mend_it(
    rig: Rig, client: str, arguments: str
) -> None:
    rig.model.step(call("read_file", arguments))
    rig.model.say("I could not read that.")
    before = len(rig.model.requests)

    async with rig.running(OWNER, hurry=50) as bot:
        rig.says("read my notes")
        await rig.reads("I could not read that.")
        await rig.quiet(bot)

    assert len(rig.model.requests) - before == 2
    assert rig.model.requests[-1]["messages"][-1]["role"] == "tool"


async def test_a_model_that_only_calls_malformed_is_stopped_with_one_message(
    rig: Rig, client: str
) -> None:
    rig.model.reply = lambda asked: call("read_file", '{"path":') if asked.get("tools") else "No."
    before = len(rig.model.requests)

    async with rig.running(OWNER, hurry=50) as bot:
        rig.says("read my notes")
        await eventually(lambda: rig.texts())
        await rig.quiet(bot)
        asked = len(rig.model.requests) - before
        rig.model.reply = None
        rig.model.say("Well again.")
        rig.says("and now?")
        await eventually(lambda: "Well again." in rig.texts())
        await rig.quiet(bot)

    first, *others = rig.texts()
    print(f"\n{client}, {asked} requests: {first}")
    assert others == ["Well again."]
    assert asked <= 9, "eight steps, and one to sum up"
