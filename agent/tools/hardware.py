"""The group `hardware`: I²C and SPI, for sensors and small devices on the bot's own pins.

Offered on Linux alone, where the extra `hardware` is installed and a bus is there. Whatever writes
asks each time and shows the exact bytes: a wrong one can damage a device.
"""

from __future__ import annotations

import asyncio
import errno
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BeforeValidator, Field

from agent.policy.presentation import is_whole, values_of
from agent.tools.arguments import Arguments
from agent.tools.buses import (
    DEVICES,
    Buses,
    BusFailed,
    I2cBus,
    LinuxBuses,
    SpiMode,
    missing_for_hardware,
)
from agent.tools.tool import Caller, Effect, Needs, Tool, ToolCard, Trust
from memory.records.errors import Permanent

# --- buses --------------------------------------------------------------------------------------
#
# The I²C and SPI buses of this machine, by the kernel's device files. Called by `hardware`.
#
# Needs the extra `hardware` (smbus2, spidev), which is loaded on first use. Everything here blocks.


FIRST_ADDRESS, LAST_ADDRESS = 0x03, 0x77
"""What is below and above is reserved by the I²C standard."""
BYTES_MAX = 4_096
WRITES = "it changes something in a device, which can damage it"
TOO_LONG = (
    "so many bytes cannot be shown whole to the owner, who has to agree to exactly them: send at "
    "most 256 at once"
)

_READ_TO_ASK = (*range(0x30, 0x38), *range(0x50, 0x60))
"""Memories: they take an empty write for the beginning of a real one."""

_Found = TypeVar("_Found")


class CallWrong(Permanent):
    """Arguments that do not fit together."""


def _number(value: object) -> object:
    """Numbers as data sheets write them: 0x48."""
    if isinstance(value, str) and value.strip().casefold().startswith("0x"):
        return int(value, 16)
    return value


Byte = Annotated[int, BeforeValidator(_number), Field(ge=0, le=255)]
Address = Annotated[int, BeforeValidator(_number), Field(ge=FIRST_ADDRESS, le=LAST_ADDRESS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The tools that this machine can have; without any, `why` says in words what is missing."""

    tools: tuple[Tool, ...] = ()
    why: str = ""


def hardware_tools(
    *, system: str = sys.platform, devices: Path = DEVICES, buses: Buses | None = None
) -> Offer:
    """What is offered here. Looks at the disk, and loads no library."""
    if buses is None:
        if why := missing_for_hardware(system, devices):
            return Offer(why=why)
        buses = LinuxBuses(devices)
    tools: list[Tool] = []
    if buses.i2c_numbers():
        tools.append(I2c(buses))
    if buses.spi_devices():
        tools.append(Spi(buses))
    return Offer(tools=tuple(tools))


# --- I²C ---------------------------------------------------------------------------------------


class I2cArguments(Arguments):
    """The register (`at`: pydantic has a `register` of its own) is written first, `data` behind."""

    action: Literal["detect", "scan", "read", "write"] = Field(
        description="detect: which buses; scan: which addresses answer"
    )
    bus: int = Field(default=1, ge=0)
    address: Address | None = None
    at: Byte | None = Field(default=None, alias="register", description="of a device that has some")
    length: int = Field(default=1, ge=1, le=BYTES_MAX)
    data: tuple[Byte, ...] = Field(default=(), max_length=BYTES_MAX)


class I2c(Tool):
    """Devices on an I²C bus."""

    card = ToolCard(
        name="i2c",
        description="Talk with devices on an I²C bus of this machine: find them, read and write "
        "their registers. Numbers may be hexadecimal.",
        arguments=I2cArguments,
        group="hardware",
        effect=Effect.OUTSIDE,
        redo="once",
        trust=Trust.UNTRUSTED,
        timeout_s=20.0,
        status="talks with a device",
    )

    def __init__(self, buses: Buses) -> None:
        self._buses = buses

    def needs(self, arguments: I2cArguments, caller: Caller) -> Needs:
        """A write asks each time; else the rules decide."""
        shows = (_shown_i2c(arguments),)
        if arguments.action == "write":
            if not is_whole(values_of(arguments), says=shows):
                return Needs(refused=TOO_LONG)
            return Needs(asks=WRITES, once_only=True, shows=shows)
        return Needs(shows=shows)

    async def run(self, arguments: I2cArguments, caller: Caller) -> str:
        """What was found or read. Raises CallWrong, BusMissing and BusFailed."""
        match arguments.action:
            case "detect":
                return _detected(self._buses.i2c_numbers())
            case "scan":
                found = await asyncio.to_thread(self._on_bus, arguments, _scan)
                return _scanned(arguments.bus, found)
            case "read":
                got = await asyncio.to_thread(self._exchanged, arguments)
                return f"{len(got)} bytes: {_hex(got)}"
            case "write":
                await asyncio.to_thread(self._exchanged, arguments)
                return f"written to 0x{arguments.address:02x}: {_hex(_sent(arguments))}"

    def _exchanged(self, arguments: I2cArguments) -> bytes:
        sent, address = _sent(arguments), arguments.address
        if address is None:
            raise CallWrong("address is missing: scan says which ones answer")
        if arguments.action == "read" and arguments.data:
            raise CallWrong("a read takes no data: use write")
        if arguments.action == "write" and not sent:
            raise CallWrong("there is nothing to write: give register or data")
        length = arguments.length if arguments.action == "read" else 0
        try:
            return self._on_bus(arguments, lambda bus: bus.exchange(address, sent, length))
        except OSError as error:
            raise BusFailed(
                f"0x{address:02x} on bus {arguments.bus} did not answer: {error.strerror}"
            ) from error

    def _on_bus(self, arguments: I2cArguments, ask: Callable[[I2cBus], _Found]) -> _Found:
        with self._buses.i2c(arguments.bus) as bus:
            return ask(bus)


def _scan(bus: I2cBus) -> list[int]:
    return [number for number in range(FIRST_ADDRESS, LAST_ADDRESS + 1) if _answers(bus, number)]


def _answers(bus: I2cBus, address: int) -> bool:
    ask = bus.answers_read if address in _READ_TO_ASK else bus.answers_quick
    try:
        ask(address)
    except OSError as error:
        return error.errno == errno.EBUSY  # a driver of the system speaks with it
    return True


def _sent(arguments: I2cArguments) -> bytes:
    register = () if arguments.at is None else (arguments.at,)
    return bytes((*register, *arguments.data))


def _detected(numbers: Sequence[int]) -> str:
    if not numbers:
        return "There is no I²C bus here."
    return f"I²C buses: {', '.join(map(str, numbers))}"


def _scanned(bus: int, found: Sequence[int]) -> str:
    if not found:
        return f"Nothing answers on bus {bus}."
    return f"On bus {bus} answer: {', '.join(f'0x{number:02x}' for number in found)}"


def _shown_i2c(arguments: I2cArguments) -> str:
    words = [f"i2c {arguments.action}"]
    if arguments.action != "detect":
        words.append(f"bus {arguments.bus}")
    if arguments.action in {"read", "write"} and arguments.address is not None:
        words.append(f"address 0x{arguments.address:02x}")
    if arguments.action in {"read", "write"} and arguments.at is not None:
        words.append(f"register 0x{arguments.at:02x}")
    if arguments.action == "read":
        words.append(f"{arguments.length} bytes")
    if arguments.action == "write":
        words.append(f"data {_hex(bytes(arguments.data)) or 'none'}")
    return ", ".join(words)


# --- SPI ---------------------------------------------------------------------------------------


class SpiArguments(Arguments):
    """`transfer` sends `data` and gets as many bytes; `read` sends zeros."""

    action: Literal["list", "transfer", "read"]
    bus: int = Field(default=0, ge=0)
    device: int = Field(default=0, ge=0, description="chip select")
    data: tuple[Byte, ...] = Field(default=(), max_length=BYTES_MAX)
    length: int = Field(default=1, ge=1, le=BYTES_MAX, description="of a read")
    speed_hz: int = Field(default=500_000, ge=1_000, le=50_000_000)
    mode: int = Field(default=0, ge=0, le=3)


class Spi(Tool):
    """Devices on an SPI bus."""

    card = ToolCard(
        name="spi",
        description="Talk with devices on an SPI bus of this machine: list them, transfer bytes, "
        "read. Numbers may be hexadecimal.",
        arguments=SpiArguments,
        group="hardware",
        effect=Effect.OUTSIDE,
        redo="once",
        trust=Trust.UNTRUSTED,
        timeout_s=20.0,
        status="talks with a device",
    )

    def __init__(self, buses: Buses) -> None:
        self._buses = buses

    def needs(self, arguments: SpiArguments, caller: Caller) -> Needs:
        """A transfer asks each time; else the rules decide."""
        shows = (_shown_spi(arguments),)
        if arguments.action == "transfer":
            if not is_whole(values_of(arguments), says=shows):
                return Needs(refused=TOO_LONG)
            return Needs(asks=WRITES, once_only=True, shows=shows)
        return Needs(shows=shows)

    async def run(self, arguments: SpiArguments, caller: Caller) -> str:
        """What was found or received. Raises CallWrong, BusMissing and BusFailed."""
        if arguments.action == "list":
            return _listed(self._buses.spi_devices())
        if arguments.action == "transfer" and not arguments.data:
            raise CallWrong("there is nothing to transfer: give data")
        if arguments.action == "read" and arguments.data:
            raise CallWrong("a read takes no data: use transfer")
        got = await asyncio.to_thread(
            self._buses.spi,
            (arguments.bus, arguments.device),
            SpiMode(speed_hz=arguments.speed_hz, mode=arguments.mode),
            bytes(arguments.data) or bytes(arguments.length),
        )
        return f"{len(got)} bytes: {_hex(got)}"


def _listed(devices: Sequence[tuple[int, int]]) -> str:
    if not devices:
        return "There is no SPI device here."
    return f"SPI devices (bus.device): {', '.join(f'{bus}.{one}' for bus, one in devices)}"


def _shown_spi(arguments: SpiArguments) -> str:
    if arguments.action == "list":
        return "spi list"
    what = f"spi {arguments.action}, device {arguments.bus}.{arguments.device}"
    how = f"{arguments.speed_hz:,} Hz, mode {arguments.mode}"
    if arguments.action == "read":
        return f"{what}, {arguments.length} bytes, {how}"
    return f"{what}, data {_hex(bytes(arguments.data)) or 'none'}, {how}"


def _hex(data: bytes) -> str:
    return data.hex(" ")
