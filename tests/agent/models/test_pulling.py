"""A model file is fetched whole, checked and resumed, or it is not there."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.models import download as pulling
from agent.models.download import (
    PullBroken,
    Pulled,
    PullRefused,
    Source,
    find,
    memory_warning,
    pull,
)
from tests.agent.models.hub import Hub, serving

MODEL = b"GGUF" + random.Random(7).randbytes(300_000)
SHA256 = hashlib.sha256(MODEL).hexdigest()


@pytest.fixture
async def hub() -> AsyncIterator[Hub]:
    async with serving(ann={"small-GGUF/small-Q4_K_M.gguf": MODEL}) as hub:
        yield hub


async def at_once(seconds: float) -> None:
    await asyncio.sleep(0)


async def fetched(hub: Hub, folder: Path, name: str = "ann/small-GGUF", **wanted: str) -> Pulled:
    source = await find(name, env={"HF_ENDPOINT": hub.base_url, **wanted})
    return await pull(source, folder, progress=lambda done, size: None, sleep=at_once)


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


# --- a file comes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [" hf.co/ann/small-GGUF ", "ann/small-GGUF:q4_k_m", "ann/small-GGUF/small-Q4_K_M.gguf"],
)
async def test_a_model_of_the_hub_is_fetched_by_its_name(
    hub: Hub, tmp_path: Path, name: str
) -> None:
    source = await find(name, env={"HF_ENDPOINT": hub.base_url})
    seen: list[tuple[int, int]] = []

    done = await pull(source, tmp_path, progress=lambda *told: seen.append(told))

    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == ((0, len(MODEL)), (len(MODEL), len(MODEL)))
    assert done.path == tmp_path / "small-Q4_K_M.gguf"
    assert done.path.read_bytes() == MODEL
    assert (done.size, done.sha256, done.fetched) == (len(MODEL), SHA256, len(MODEL))
    assert left_in(tmp_path) == ["small-Q4_K_M.gguf"]


async def test_a_file_is_fetched_by_its_address(hub: Hub, tmp_path: Path) -> None:
    url = f"{hub.base_url}/ann/small-GGUF/resolve/main/small-Q4_K_M.gguf?download=true"

    source = await find(url, env={}, sha256=SHA256.upper())
    done = await pull(source, tmp_path, progress=lambda done, size: None, sleep=at_once)

    assert done.path.name == "small-Q4_K_M.gguf"
    assert done.path.read_bytes() == MODEL


async def test_what_is_there_already_is_not_fetched_again(hub: Hub, tmp_path: Path) -> None:
    await fetched(hub, tmp_path)
    before = len(hub.ranges_asked())

    again = await fetched(hub, tmp_path)

    assert again.fetched == 0
    assert again.sha256 == SHA256
    assert len(hub.ranges_asked()) == before


async def test_another_file_of_that_name_is_never_written_over(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "small-Q4_K_M.gguf").write_bytes(b"GGUF of mine")

    with pytest.raises(PullRefused, match="is another file"):
        await fetched(hub, tmp_path)

    assert (tmp_path / "small-Q4_K_M.gguf").read_bytes() == b"GGUF of mine"


# --- a file comes in pieces ----------------------------------------------------------------------


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cut_after=st.integers(1, len(MODEL)), cuts=st.integers(0, 6), ranges=st.booleans())
async def test_wherever_the_line_breaks_the_file_is_whole_in_the_end(
    tmp_path_factory: pytest.TempPathFactory, cut_after: int, cuts: int, ranges: bool
) -> None:
    folder = tmp_path_factory.mktemp("models")
    async with serving(ann={"small-GGUF/small.gguf": MODEL}) as hub:
        hub.cut_after, hub.cuts, hub.ranges = cut_after, cuts, ranges

        try:
            done = await fetched(hub, folder)
        except PullBroken:
            assert not (folder / "small.gguf").exists()
            hub.cuts = 0
            done = await fetched(hub, folder)

        assert done.path.read_bytes() == MODEL
        assert left_in(folder) == ["small.gguf"]


async def test_a_second_command_goes_on_where_the_first_was_killed(
    hub: Hub, tmp_path: Path
) -> None:
    hub.hold = asyncio.Event()
    running = asyncio.create_task(fetched(hub, tmp_path))
    part = tmp_path / "small-Q4_K_M.gguf.part"
    while not part.exists() or part.stat().st_size < 100_000:
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    had = part.stat().st_size
    hub.hold = None

    done = await fetched(hub, tmp_path)

    assert hub.ranges_asked()[-1] == f"bytes={had}-"
    assert done.fetched == len(MODEL) - had
    assert done.path.read_bytes() == MODEL


async def test_a_file_that_changed_meanwhile_is_begun_anew(hub: Hub, tmp_path: Path) -> None:
    url = f"{hub.base_url}/ann/small-GGUF/resolve/main/small-Q4_K_M.gguf"
    source = Source(url=url, file="small.gguf")
    hub.cut_after, hub.cuts = 100_000, 1

    async def changes(seconds: float) -> None:
        hub.files["ann/small-GGUF"]["small-Q4_K_M.gguf"] = MODEL[:4] + MODEL[:3:-1]
        hub.etag, hub.status = '"two"', 503

    with pytest.raises(PullBroken):
        await pull(source, tmp_path, progress=lambda done, size: None, sleep=changes)
    assert (tmp_path / "small.gguf.part").stat().st_size > 0

    hub.status = 200
    done = await pull(source, tmp_path, progress=lambda done, size: None, sleep=at_once)

    assert done.path.read_bytes() == hub.files["ann/small-GGUF"]["small-Q4_K_M.gguf"]


async def test_one_command_at_a_time_fetches_a_file(hub: Hub, tmp_path: Path) -> None:
    hub.hold = asyncio.Event()
    first = asyncio.create_task(fetched(hub, tmp_path))
    while not hub.ranges_asked():
        await asyncio.sleep(0.01)

    with pytest.raises(PullRefused, match="is being fetched already"):
        await fetched(hub, tmp_path)

    hub.hold.set()
    assert (await first).path.read_bytes() == MODEL


# --- it is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"says_sha": "0" * 64}, "checksum of what came"),
        ({"says_size": 12}, "should have 12 bytes"),
        ({"status": 404}, "has no ann/small-GGUF"),
        ({"status": 403}, "wants a token"),
        ({"status": 418}, "HTTP 418"),
    ],
)
async def test_what_is_not_as_it_should_be_is_refused_and_nothing_stands_there(
    hub: Hub, tmp_path: Path, change: dict[str, object], why: str
) -> None:
    for name, value in change.items():
        setattr(hub, name, value)

    with pytest.raises(PullRefused, match=why):
        await fetched(hub, tmp_path)

    assert not any(name.endswith(".gguf") for name in left_in(tmp_path))


@pytest.mark.parametrize("content", [b"<html>Please log in</html>" * 40, b"GG", b""])
async def test_what_is_no_model_file_is_dropped(tmp_path: Path, content: bytes) -> None:
    async with serving(ann={"page-GGUF/page.gguf": content}) as hub:
        with pytest.raises(PullRefused, match="not a GGUF model file"):
            await fetched(hub, tmp_path, "ann/page-GGUF")

    assert left_in(tmp_path) == []


async def test_a_model_that_has_no_room_is_not_begun(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulling, "SPARE_BYTES", 1 << 60)

    with pytest.raises(PullRefused, match="too little space"):
        await fetched(hub, tmp_path)

    assert not any(path.stat().st_size for path in tmp_path.glob("*.part"))


async def test_a_hub_in_trouble_is_tried_again_and_then_told(hub: Hub, tmp_path: Path) -> None:
    source = await find("ann/small-GGUF", env={"HF_ENDPOINT": hub.base_url})
    hub.status = 503
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    with pytest.raises(PullBroken, match="HTTP 503"):
        await pull(source, tmp_path, progress=lambda done, size: None, sleep=sleep)

    assert pauses == [1.0, 2.0, 5.0, 10.0]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("http://models.example/m.gguf", "has to begin with https"),
        ("https://ann:secret@models.example/m.gguf", "password"),
        ("https://models.example/m.zip", "not the name of a .gguf"),
        ("https://models.example/%2e%2e%2fm.gguf", "not the name of a .gguf"),
        ("https:///m.gguf", "not an address"),
        ("https://models.example/m-00001-of-00003.gguf", "several parts"),
        ("llama", "is no model"),
        ("ann/../secret.gguf", "is no model"),
        ("ann/small --sha256 abc", "64 hexadecimal digits"),
    ],
)
async def test_a_name_that_cannot_be_meant_is_refused_before_anybody_is_asked(
    name: str, why: str
) -> None:
    name, _, sha256 = name.partition(" --sha256 ")
    with pytest.raises(PullRefused, match=why):
        await find(name, env={}, sha256=sha256)


async def test_a_redirect_to_an_unsafe_address_is_not_followed(hub: Hub, tmp_path: Path) -> None:
    hub.location = "http://models.example/m.gguf"

    with pytest.raises(PullRefused, match="has to begin with https"):
        await fetched(hub, tmp_path)


async def test_redirects_have_an_end(hub: Hub, tmp_path: Path) -> None:
    hub.location = "/ann/small-GGUF/resolve/main/small-Q4_K_M.gguf"

    with pytest.raises(PullRefused, match="more than 5 redirects"):
        await fetched(hub, tmp_path)


async def test_the_token_goes_to_the_hub_alone(hub: Hub, tmp_path: Path) -> None:
    async with serving(ann={"small-GGUF/small-Q4_K_M.gguf": MODEL}) as elsewhere:
        hub.location = (
            f"{elsewhere.base_url}/elsewhere/ann/small-GGUF/resolve/main/small-Q4_K_M.gguf"
        )

        done = await fetched(hub, tmp_path, HF_TOKEN="hf_secret")

    assert done.path.read_bytes() == MODEL
    assert all(headers["Authorization"] == "Bearer hf_secret" for _, headers in hub.asked)
    assert all("Authorization" not in headers for _, headers in elsewhere.asked)


# --- which of several ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("ann/big-GGUF", "big-Q4_K_M.gguf"),
        ("ann/big-GGUF:Q5", "big-Q5_K_M.gguf"),
        ("ann/big-GGUF:UD-Q6_K", "big-UD-Q6_K.gguf"),
        ("ann/big-GGUF/sub/big-F16.gguf", "big-F16.gguf"),
    ],
)
async def test_of_several_files_the_one_that_is_meant_is_taken(name: str, file: str) -> None:
    async with serving(ann={f"big-GGUF/{path}": MODEL for path in BIG}) as hub:
        source = await find(name, env={"HF_ENDPOINT": hub.base_url})

    assert source.file == file


BIG = (
    "README.gguf.md",
    "big-Q4_K_M.gguf",
    "big-Q5_K_M.gguf",
    "big-UD-Q6_K.gguf",
    "big-Q8_0.gguf",
    "sub/big-F16.gguf",
    "big-F32-00001-of-00002.gguf",
)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ann/big-GGUF:K_M", "several files that could be meant"),
        ("ann/big-GGUF:Q2", "has no Q2. Name one"),
        ("ann/big-GGUF/nothing.gguf", "has no nothing.gguf"),
        ("ann/big-GGUF/big-F32-00001-of-00002.gguf", "several parts"),
        ("ann/plain-GGUF", "ends in -GGUF"),
    ],
)
async def test_where_none_or_several_could_be_meant_those_that_there_are_are_named(
    name: str, why: str
) -> None:
    files = {f"big-GGUF/{path}": MODEL for path in BIG} | {"plain-GGUF/m.safetensors": b"x"}
    async with serving(ann=files) as hub:
        env = {"HF_ENDPOINT": hub.base_url}
        with pytest.raises(PullRefused, match=why):
            await find(name, env=env)


# --- this machine --------------------------------------------------------------------------------


def test_a_model_that_does_not_fit_the_memory_is_told() -> None:
    assert memory_warning(4_700_000_000, memory=8_000_000_000) == ""
    assert memory_warning(4_700_000_000, memory=0) == ""
    told = memory_warning(40_000_000_000, memory=8_000_000_000)
    assert told.startswith("This machine has 8.0 GB of memory; the model takes about 44.5 GB.")
