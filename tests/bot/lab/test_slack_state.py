"""Threads in the Slack stand-in's memory, whatever is done to them."""

import time

from hypothesis import given
from hypothesis import strategies as st

from bot.lab.slack_events import person_message
from bot.lab.slack_state import Identity, SlackMessage, SlackWorkspace

ACTS = st.lists(st.tuples(st.sampled_from(["post", "reply", "delete"]), st.integers(0, 50)))


def workspace(cap: int = 1000) -> SlackWorkspace:
    made = SlackWorkspace(Identity(), cap=cap, clock=time.monotonic)
    made.conversation("C1")
    return made


def post(here: SlackWorkspace, thread_ts: str | None = None) -> SlackMessage:
    message = person_message("U1", "x", ts=here.next_ts(), team="T")
    return here.keep("C1", message | ({"thread_ts": thread_ts} if thread_ts else {}), is_bot=False)


def act(here: SlackWorkspace, acts: list[tuple[str, int]]) -> None:
    for kind, number in acts:
        everything = list(here.messages("C1"))
        parents = [kept for kept in everything if not kept.is_reply]
        if kind == "post" or not everything:
            post(here)
        elif kind == "reply":
            parent = parents[number % len(parents)] if parents else None
            post(here, parent.ts if parent else "1.000001")
        else:
            here.delete(everything[number % len(everything)])


@given(acts=ACTS)
def test_every_reply_stands_below_its_parent_and_all_are_shown_once(
    acts: list[tuple[str, int]],
) -> None:
    here = workspace()

    act(here, acts)

    seen = here.seen("C1")
    assert sorted(s.ts for s in seen) == [kept.ts for kept in here.messages("C1")]
    above = ""
    for one in seen:
        above = one.thread_ts or "" if one.is_reply else one.ts
        assert not one.is_reply or one.thread_ts == above
    tops = [s.ts for s in seen if not s.is_reply]
    assert tops == sorted(tops)
    for ts in tops:
        replies = [s.ts for s in seen if s.is_reply and s.thread_ts == ts]
        assert replies == [kept.ts for kept in here.replies("C1", ts)] == sorted(replies)
        place = [s.ts for s in seen].index(ts)
        assert [s.ts for s in seen][place + 1 : place + 1 + len(replies)] == replies


@given(acts=ACTS, cap=st.integers(1, 5))
def test_the_oldest_are_forgotten_beyond_the_cap(acts: list[tuple[str, int]], cap: int) -> None:
    here = workspace(cap)

    act(here, acts)

    assert len(list(here.messages("C1"))) <= cap
    assert len(here.seen("C1")) == len(list(here.messages("C1")))


def test_a_timestamp_is_never_given_twice_and_always_grows() -> None:
    here = SlackWorkspace(Identity(), cap=10, clock=time.monotonic, wall=lambda: 1_700_000_000.0)

    stamps = [here.next_ts() for _ in range(1000)]

    assert stamps == sorted(set(stamps))
