"""Methods of the App's parts that are called through the private socket."""

from __future__ import annotations

import pkgutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from pydantic import TypeAdapter

from bot.app.app import App
from bot.rpc import PIECE_CHARS, ControlClient, ControlServer, Service, call_method, service
from memory.records.errors import Permanent, StorageFull
from memory.records.messages import Role

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A record, as services take and return them."""

    name: str
    role: Role
    at: datetime
    tags: tuple[str, ...] = ()


class Visits:
    """A service."""

    def __init__(self) -> None:
        self.kept: list[Visit] = []

    async def add(self, visit: Visit, *, times: int = 1) -> Sequence[Visit]:
        self.kept += [visit] * times
        return tuple(self.kept)

    async def long(self, chars: int) -> str:
        return "\N{SNOWMAN}" * chars

    async def fails(self) -> None:
        raise StorageFull("No space is left.")

    async def closed(self) -> str:
        return "never told"


class House:
    """An App in small."""

    @service("tests.bot.test_rpc_methods:Visits", "add", "long", "fails")
    def visits(self) -> Visits:
        return Visits()


@pytest.fixture
async def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ControlClient]:
    monkeypatch.chdir(tmp_path)
    house = House()
    operations = {"call": lambda request, emit: call_method(house, request, emit)}
    path = Path("bot.sock")
    async with ControlServer(path, operations), ControlClient(path) as client:
        yield client


async def test_arguments_and_result_arrive_as_what_they_are(client: ControlClient) -> None:
    visit = Visit(name="Ann", role=Role.OWNER, at=NOON, tags=("tea", "cake"))

    first = await client.call(House.visits.add, visit)
    again = await client.call(House.visits.add, visit, times=2)

    assert list(first) == [visit]
    assert list(again) == [visit] * 3


async def test_an_answer_longer_than_a_line_arrives_whole(client: ControlClient) -> None:
    chars = PIECE_CHARS * 2
    assert await client.call(House.visits.long, chars) == "\N{SNOWMAN}" * chars


async def test_what_a_method_raises_arrives_in_its_own_words(client: ControlClient) -> None:
    with pytest.raises(Permanent, match="No space is left"):
        await client.call(House.visits.fails)


def test_a_method_that_is_not_named_cannot_be_called_by_mistake() -> None:
    with pytest.raises(AttributeError, match=r"visits\.closed cannot be called"):
        _ = House.visits.closed


@pytest.mark.parametrize(
    ("part", "method", "arguments"),
    [
        ("visits", "closed", {}),
        ("visits", "__init__", {}),
        ("visits", "kept", {}),
        ("__class__", "mro", {}),
        ("nobody", "add", {}),
        ("visits", "long", {"chars": "many"}),
        ("visits", "long", {"chars": 1, "more": 2}),
        ("visits", "long", {}),
        ("visits", "add", {"visit": {"name": "Ann"}}),
        (7, None, []),
    ],
)
async def test_all_else_is_closed(
    client: ControlClient, part: Any, method: Any, arguments: Any
) -> None:
    with pytest.raises(Permanent, match="does not know that"):
        await client.ask("call", part=part, method=method, arguments=arguments)

    assert await client.call(House.visits.long, 1) == "\N{SNOWMAN}"


def test_each_method_that_the_app_offers_has_types_that_travel() -> None:
    offered = [part for part in vars(App).values() if isinstance(part, Service)]
    methods = [getattr(part, name) for part in offered for name in part.methods]

    assert len(methods) > 10
    for method in methods:
        function = getattr(pkgutil.resolve_name(method.kind), method.name)
        for hint in get_type_hints(function).values():
            TypeAdapter(hint)
