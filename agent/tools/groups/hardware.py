"""The group `hardware`: I²C and SPI, for sensors and small devices on the bot's own pins.

Offered on Linux alone, where the extra `hardware` (smbus2 and spidev, loaded on first use) is
installed and a bus is there. Whatever writes asks each time and shows the exact bytes: a wrong one
can damage a device.
"""

from __future__ import annotations

import errno
import importlib
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from agent.tools.tool import Caller, Effect, Needs, Tool, Trust, tool, tools_of
from memory.records.errors import Permanent, Temporary

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


DEVICES = Path("/dev")


# --- the buses of this machine -----------------------------------------------------------------


class BusFailed(Temporary):
    """A device did not answer, or the bus is busy."""


class BusMissing(Permanent):
    """There is no such bus or device here, or it may not be opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpiMode:
    """How a device is spoken to: clock in hertz, clock mode 0 to 3, bits of a word."""

    speed_hz: int = 500_000
    mode: int = 0
    bits: int = 8


class I2cBus:
    """One open I²C bus. Raises OSError."""

    def __init__(self, bus: Any, message: Any) -> None:
        self._bus = bus
        self._message = message

    def answers_quick(self, address: int) -> None:
        """Ask a device by an empty write."""
        self._bus.write_quick(address)

    def answers_read(self, address: int) -> None:
        """Ask a device by reading one byte."""
        self._bus.read_byte(address)

    def exchange(self, address: int, sent: bytes, length: int) -> bytes:
        """Write `sent`, then read `length` bytes, without letting the bus go in between."""
        messages = [self._message.write(address, list(sent))] if sent else []
        reading = self._message.read(address, length) if length else None
        self._bus.i2c_rdwr(*messages, *([reading] if reading else []))
        return bytes(reading) if reading else b""


class Buses:
    """What is connected, by `/dev/i2c-N` and `/dev/spidevB.D`. Everything here blocks."""

    def __init__(self, devices: Path = DEVICES) -> None:
        self._devices = devices

    def i2c_numbers(self) -> Sequence[int]:
        """By the names of the device files."""
        return sorted(int(found[1]) for found in self._named(r"i2c-(\d+)"))

    def spi_devices(self) -> Sequence[tuple[int, int]]:
        """By the names of the device files."""
        return sorted(
            (int(found[1]), int(found[2])) for found in self._named(r"spidev(\d+)\.(\d+)")
        )

    @contextmanager
    def i2c(self, number: int) -> Iterator[I2cBus]:
        """Raises BusMissing, and BusFailed for what goes wrong while it is open."""
        name = f"i2c-{number}"
        library = importlib.import_module("smbus2")
        with _opened(name):
            bus = library.SMBus(str(self._devices / name))
        with closing(bus):
            yield I2cBus(bus, library.i2c_msg)

    def spi(self, device: tuple[int, int], mode: SpiMode, sent: bytes) -> bytes:
        """Raises BusMissing and BusFailed."""
        name = f"spidev{device[0]}.{device[1]}"
        spi = importlib.import_module("spidev").SpiDev()
        with closing(spi):
            with _opened(name):
                spi.open(*device)
            try:
                spi.max_speed_hz, spi.mode, spi.bits_per_word = mode.speed_hz, mode.mode, mode.bits
                return bytes(spi.xfer3(list(sent)))
            except OSError as error:
                raise BusFailed(f"{name} did not take it: {error.strerror}") from error

    def _named(self, pattern: str) -> list[re.Match[str]]:
        try:
            names = [path.name for path in self._devices.iterdir()]
        except OSError:
            return []
        return [found for name in names if (found := re.fullmatch(pattern, name))]


@contextmanager
def _opened(name: str) -> Any:
    try:
        yield
    except FileNotFoundError as error:
        raise BusMissing(f"/dev/{name} is not there: ask for what there is first") from error
    except PermissionError as error:
        group = name.partition("-")[0] if name.startswith("i2c") else "spi"
        raise BusMissing(
            f"/dev/{name} may not be opened: add the bot's account to the group {group}"
        ) from error
    except OSError as error:
        raise BusMissing(f"/dev/{name} cannot be used: {error.strerror}") from error


# --- tools -------------------------------------------------------------------------------------


class CallWrong(Permanent):
    """Arguments that do not fit together."""


def _number(value: object) -> object:
    """Numbers as data sheets write them: 0x48."""
    if isinstance(value, str) and value.strip().casefold().startswith("0x"):
        return int(value, 16)
    return value


Byte = Annotated[int, BeforeValidator(_number), Field(ge=0, le=255)]
Address = Annotated[int, BeforeValidator(_number), Field(ge=FIRST_ADDRESS, le=LAST_ADDRESS)]


def hardware_tools(buses: Buses) -> list[Tool]:
    """The tools for what is connected. Looks at the disk, and loads no library."""
    tools: list[Tool] = []
    if buses.i2c_numbers():
        tools += tools_of(I2cTools(buses))
    if buses.spi_devices():
        tools += tools_of(SpiTools(buses))
    return tools


# --- I²C ---------------------------------------------------------------------------------------


class I2cTools:
    """Devices on an I²C bus."""

    def __init__(self, buses: Buses) -> None:
        self._buses = buses

    def _i2c_needs(
        self,
        caller: Caller,
        action: str,
        bus: int,
        address: int | None,
        at: int | None,
        length: int,
        data: tuple[int, ...],
    ) -> Needs:
        words = [f"i2c {action}"]
        if action != "detect":
            words.append(f"bus {bus}")
        if action in {"read", "write"} and address is not None:
            words.append(f"address 0x{address:02x}")
        if action in {"read", "write"} and at is not None:
            words.append(f"register 0x{at:02x}")
        if action == "read":
            words.append(f"{length} bytes")
        if action == "write":
            words.append(f"data {bytes(data).hex(' ') or 'none'}")
        return _needs(", ".join(words), writes=action == "write")

    # The register (`at`: pydantic has a `register` of its own) is written first, `data` behind.
    @tool(
        "hardware",
        Effect.OUTSIDE,
        redo="once",
        trust=Trust.UNTRUSTED,
        needs=_i2c_needs,
        timeout_s=20.0,
        status="talks with a device",
    )
    def i2c(
        self,
        caller: Caller,
        action: Annotated[
            Literal["detect", "scan", "read", "write"],
            Field(description="detect: which buses; scan: which addresses answer"),
        ],
        bus: Annotated[int, Field(ge=0)] = 1,
        address: Address | None = None,
        at: Annotated[
            Byte | None, Field(alias="register", description="of a device that has some")
        ] = None,
        length: Annotated[int, Field(ge=1, le=BYTES_MAX)] = 1,
        data: Annotated[tuple[Byte, ...], Field(max_length=BYTES_MAX)] = (),
    ) -> str:
        """Talk with devices on an I²C bus of this machine: find them, read and write their
        registers. Numbers may be hexadecimal."""
        if action == "detect":
            numbers = self._buses.i2c_numbers()
            named = ", ".join(map(str, numbers))
            return f"I²C buses: {named}" if numbers else "There is no I²C bus here."
        if action == "scan":
            with self._buses.i2c(bus) as opened:
                addresses = range(FIRST_ADDRESS, LAST_ADDRESS + 1)
                found = [number for number in addresses if _answers(opened, number)]
            named = ", ".join(f"0x{number:02x}" for number in found)
            return f"On bus {bus} answer: {named}" if found else f"Nothing answers on bus {bus}."
        if address is None:
            raise CallWrong("address is missing: scan says which ones answer")
        sent = bytes((*(() if at is None else (at,)), *data))
        if action == "read" and data:
            raise CallWrong("a read takes no data: use write")
        if action == "write" and not sent:
            raise CallWrong("there is nothing to write: give register or data")
        try:
            with self._buses.i2c(bus) as opened:
                got = opened.exchange(address, sent, length if action == "read" else 0)
        except OSError as error:
            raise BusFailed(
                f"0x{address:02x} on bus {bus} did not answer: {error.strerror}"
            ) from error
        if action == "write":
            return f"written to 0x{address:02x}: {sent.hex(' ')}"
        return f"{len(got)} bytes: {got.hex(' ')}"


def _needs(shown: str, *, writes: bool) -> Needs:
    """A write asks each time; else the rules decide."""
    if writes:
        return Needs(asks=WRITES, once_only=True, whole=TOO_LONG, shows=(shown,))
    return Needs(shows=(shown,))


def _answers(bus: I2cBus, address: int) -> bool:
    ask = bus.answers_read if address in _READ_TO_ASK else bus.answers_quick
    try:
        ask(address)
    except OSError as error:
        return error.errno == errno.EBUSY  # a driver of the system speaks with it
    return True


class SpiTools:
    """Devices on an SPI bus."""

    def __init__(self, buses: Buses) -> None:
        self._buses = buses

    def _spi_needs(
        self,
        caller: Caller,
        action: str,
        bus: int,
        device: int,
        data: tuple[int, ...],
        length: int,
        speed_hz: int,
        mode: int,
    ) -> Needs:
        if action == "list":
            return _needs("spi list", writes=False)
        what = f"spi {action}, device {bus}.{device}"
        how = f"{speed_hz:,} Hz, mode {mode}"
        if action == "read":
            return _needs(f"{what}, {length} bytes, {how}", writes=False)
        return _needs(f"{what}, data {bytes(data).hex(' ') or 'none'}, {how}", writes=True)

    # `transfer` sends `data` and gets as many bytes; `read` sends zeros.
    @tool(
        "hardware",
        Effect.OUTSIDE,
        redo="once",
        trust=Trust.UNTRUSTED,
        needs=_spi_needs,
        timeout_s=20.0,
        status="talks with a device",
    )
    def spi(
        self,
        caller: Caller,
        action: Literal["list", "transfer", "read"],
        bus: Annotated[int, Field(ge=0)] = 0,
        device: Annotated[int, Field(ge=0, description="chip select")] = 0,
        data: Annotated[tuple[Byte, ...], Field(max_length=BYTES_MAX)] = (),
        length: Annotated[int, Field(ge=1, le=BYTES_MAX, description="of a read")] = 1,
        speed_hz: Annotated[int, Field(ge=1_000, le=50_000_000)] = 500_000,
        mode: Annotated[int, Field(ge=0, le=3)] = 0,
    ) -> str:
        """Talk with devices on an SPI bus of this machine: list them, transfer bytes, read.
        Numbers may be hexadecimal."""
        if action == "list":
            devices = self._buses.spi_devices()
            named = ", ".join(f"{one[0]}.{one[1]}" for one in devices)
            if not devices:
                return "There is no SPI device here."
            return f"SPI devices (bus.device): {named}"
        if action == "transfer" and not data:
            raise CallWrong("there is nothing to transfer: give data")
        if action == "read" and data:
            raise CallWrong("a read takes no data: use transfer")
        got = self._buses.spi(
            (bus, device),
            SpiMode(speed_hz=speed_hz, mode=mode),
            bytes(data) or bytes(length),
        )
        return f"{len(got)} bytes: {got.hex(' ')}"
