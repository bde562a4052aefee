"""I²C and SPI: with devices in memory that keep to the protocol, and with what this machine has."""

from __future__ import annotations

import errno
import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.tools.groups.hardware import Buses, I2cBus, I2cTools, SpiMode, SpiTools, hardware_tools
from agent.tools.tool import Effect, Needs, Tool
from tests.agent.tools.given import GUEST, MEMBER, OWNER, by_name, call, run_tool
from tests.agent.tools.given import needs as needs_of

WITH_LIBRARIES = all(importlib.util.find_spec(name) for name in ("smbus2", "spidev"))


class Registers:
    """A device with 256 registers and a pointer, as most sensors have."""

    def __init__(self, content: bytes = bytes(256)) -> None:
        self.content, self.pointer = bytearray(content), 0

    def exchange(self, sent: bytes, length: int) -> bytes:
        if sent:
            self.pointer = sent[0]
        for byte in sent[1:]:
            self.content[self.pointer] = byte
            self.pointer = (self.pointer + 1) % 256
        got = bytes(self.content[(self.pointer + n) % 256] for n in range(length))
        self.pointer = (self.pointer + length) % 256
        return got


class MemoryBus(I2cBus):
    """A bus with such devices. A memory counts the empty writes that would spoil it."""

    def __init__(self, devices: dict[int, Registers], busy: Sequence[int] = ()) -> None:
        self.devices, self.busy, self.quick = devices, busy, list[int]()

    def answers_quick(self, address: int) -> None:
        self.quick.append(address)
        self.exchange(address, b"", 0)

    def answers_read(self, address: int) -> None:
        self.exchange(address, b"", 1)

    def exchange(self, address: int, sent: bytes, length: int) -> bytes:
        if address in self.busy:
            raise OSError(errno.EBUSY, "Device or resource busy")
        if address not in self.devices:
            raise OSError(errno.EREMOTEIO, "Remote I/O error")
        return self.devices[address].exchange(sent, length)


class MemoryBuses(Buses):
    """Buses in memory; an SPI device answers with its input upside down."""

    def __init__(self) -> None:
        self.bus = MemoryBus({0x48: Registers(bytes(range(256))), 0x50: Registers()}, busy=[0x68])
        self.asked = list[tuple[tuple[int, int], SpiMode, bytes]]()

    def i2c_numbers(self) -> Sequence[int]:
        return [1]

    def spi_devices(self) -> Sequence[tuple[int, int]]:
        return [(0, 0), (0, 1)]

    @contextmanager
    def i2c(self, number: int) -> Iterator[I2cBus]:
        yield self.bus

    def spi(self, device: tuple[int, int], mode: SpiMode, sent: bytes) -> bytes:
        self.asked.append((device, mode, sent))
        return bytes(255 - byte for byte in sent)


@pytest.fixture
def buses() -> MemoryBuses:
    return MemoryBuses()


async def said(tool: Tool, **arguments: object) -> str:
    result = await run_tool(tool, call(tool.card.name, arguments), OWNER)
    assert result.ok, result.content
    return result.content


async def refused(tool: Tool, **arguments: object) -> str:
    result = await run_tool(tool, call(tool.card.name, arguments), OWNER)
    assert not result.ok, result.content
    return result.content


def needs(tool: Tool, **arguments: object) -> Needs:
    return needs_of(tool, OWNER, **arguments)


async def test_devices_are_found_and_no_memory_is_spoilt_by_that(buses: MemoryBuses) -> None:
    tool = by_name(I2cTools(buses))["i2c"]

    assert await said(tool, action="detect") == "I²C buses: 1"
    assert await said(tool, action="scan") == "On bus 1 answer: 0x48, 0x50, 0x68"
    assert not [address for address in buses.bus.quick if 0x50 <= address < 0x60]
    assert min(buses.bus.quick) == 0x03
    assert max(buses.bus.quick) == 0x77


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"action": "read"}, "address is missing"),
        ({"action": "read", "address": 0x49}, "0x49 on bus 1 did not answer: Remote I/O error"),
        ({"action": "read", "address": 0x48, "data": [1]}, "a read takes no data"),
        ({"action": "write", "address": 0x48}, "nothing to write"),
        ({"action": "write", "address": 0x02, "data": [1]}, "greater than or equal to 3"),
        ({"action": "write", "address": 0x78, "data": [1]}, "less than or equal to 119"),
        ({"action": "write", "address": 0x48, "data": [256]}, "less than or equal to 255"),
        ({"action": "read", "address": "0xzz"}, "address"),
        ({"action": "erase"}, "action"),
    ],
)
async def test_what_does_not_fit_is_said(
    buses: MemoryBuses, arguments: dict[str, object], why: str
) -> None:
    before = bytes(buses.bus.devices[0x48].content)

    assert why in await refused(by_name(I2cTools(buses))["i2c"], **arguments)
    assert bytes(buses.bus.devices[0x48].content) == before


async def test_spi_devices_are_listed_and_spoken_to(buses: MemoryBuses) -> None:
    tool = by_name(SpiTools(buses))["spi"]

    assert await said(tool, action="list") == "SPI devices (bus.device): 0.0, 0.1"
    assert await said(tool, action="transfer", device=1, data=[0, "0x0f"]) == "2 bytes: ff f0"
    assert await said(tool, action="read", length=2, mode=3) == "2 bytes: ff ff"
    assert buses.asked == [
        ((0, 1), SpiMode(), b"\x00\x0f"),
        ((0, 0), SpiMode(mode=3), b"\x00\x00"),
    ]
    assert "nothing to transfer" in await refused(tool, action="transfer")
    assert "a read takes no data" in await refused(tool, action="read", data=[1])


async def test_what_writes_asks_each_time_and_shows_the_bytes(buses: MemoryBuses) -> None:
    write = needs(
        by_name(I2cTools(buses))["i2c"], action="write", address=0x50, register=1, data=[2, 255]
    )
    transfer = needs(by_name(SpiTools(buses))["spi"], action="transfer", data=[1, 2])

    assert write.asks
    assert write.once_only
    assert write.shows == ("i2c write, bus 1, address 0x50, register 0x01, data 02 ff",)
    assert transfer.asks
    assert transfer.once_only
    assert transfer.shows == ("spi transfer, device 0.0, data 01 02, 500,000 Hz, mode 0",)
    for harmless in (
        needs(by_name(I2cTools(buses))["i2c"], action="scan"),
        needs(by_name(I2cTools(buses))["i2c"], action="read", address=0x48),
        needs(by_name(SpiTools(buses))["spi"], action="list"),
        needs(by_name(SpiTools(buses))["spi"], action="read"),
    ):
        assert not harmless.asks
        assert harmless.shows


async def test_nobody_but_the_owner_reaches_the_pins(buses: MemoryBuses) -> None:
    for tool in hardware_tools(buses):
        assert tool.card.effect is Effect.OUTSIDE
        assert tool.card.redo == "once"
        for who in (MEMBER, GUEST):
            assert not (await run_tool(tool, call(tool.card.name, {"action": "list"}), who)).ok


def test_without_a_device_nothing_is_offered(tmp_path: Path) -> None:
    assert hardware_tools(Buses(tmp_path)) == hardware_tools(Buses(tmp_path / "nothing")) == []


def test_buses_are_known_by_the_names_of_device_files(tmp_path: Path) -> None:
    for name in ("i2c-1", "i2c-10", "i2c-2", "i2c-x", "spidev0.1", "spidev0.0", "spidev1", "tty"):
        (tmp_path / name).touch()

    found = Buses(tmp_path)

    assert found.i2c_numbers() == [1, 2, 10]
    assert found.spi_devices() == [(0, 0), (0, 1)]
