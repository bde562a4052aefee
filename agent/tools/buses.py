"""The I²C and SPI buses of this machine, by the kernel's device files. Called by `hardware`.

Needs the extra `hardware` (smbus2, spidev), which is loaded on first use. Everything here blocks.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from memory.records.errors import Permanent, Temporary

DEVICES = Path("/dev")


LIBRARIES = ("smbus2", "spidev")


class BusFailed(Temporary):
    """A device did not answer, or the bus is busy."""


class BusMissing(Permanent):
    """There is no such bus or device here, or it may not be opened."""


class I2cBus(Protocol):
    """One open I²C bus. Raises OSError."""

    def answers_quick(self, address: int) -> None:
        """Asks a device by an empty write."""

    def answers_read(self, address: int) -> None:
        """Asks a device by reading one byte."""

    def exchange(self, address: int, sent: bytes, length: int) -> bytes:
        """Writes `sent`, then reads `length` bytes, without letting the bus go in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpiMode:
    """How a device is spoken to: clock in hertz, clock mode 0 to 3, bits of a word."""

    speed_hz: int = 500_000
    mode: int = 0
    bits: int = 8


class Buses(Protocol):
    """What is connected. Raises BusMissing, BusFailed."""

    def i2c_numbers(self) -> Sequence[int]:
        """Numbers of the I²C buses, sorted."""

    def spi_devices(self) -> Sequence[tuple[int, int]]:
        """Bus and chip select of the SPI devices, sorted."""

    def i2c(self, number: int) -> AbstractContextManager[I2cBus]:
        """An open bus, closed behind."""

    def spi(self, device: tuple[int, int], mode: SpiMode, sent: bytes) -> bytes:
        """Sends and receives as many bytes at the same time."""


def missing_for_hardware(system: str = sys.platform, devices: Path = DEVICES) -> str:
    """Why there are no hardware tools here, in words; empty when there can be."""
    if system != "linux":
        return "I²C and SPI are reached on Linux alone"
    absent = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if absent:
        return f"{' and '.join(absent)} not installed: pip install 'hearthbot[hardware]'"
    found = LinuxBuses(devices)
    if not found.i2c_numbers() and not found.spi_devices():
        return "this machine has neither /dev/i2c-* nor /dev/spidev*: switch the bus on first"
    return ""


class LinuxBuses:
    """Buses by `/dev/i2c-N` and `/dev/spidevB.D`."""

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
    def i2c(self, number: int) -> Any:
        """Raises BusMissing, and BusFailed for what goes wrong while it is open."""
        name = f"i2c-{number}"
        library = importlib.import_module("smbus2")
        with _opened(name):
            bus = library.SMBus(str(self._devices / name))
        with closing(bus):
            yield _SmBus(bus, library.i2c_msg)

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


class _SmBus:
    def __init__(self, bus: Any, message: Any) -> None:
        self._bus = bus
        self._message = message

    def answers_quick(self, address: int) -> None:
        self._bus.write_quick(address)

    def answers_read(self, address: int) -> None:
        self._bus.read_byte(address)

    def exchange(self, address: int, sent: bytes, length: int) -> bytes:
        messages = [self._message.write(address, list(sent))] if sent else []
        reading = self._message.read(address, length) if length else None
        self._bus.i2c_rdwr(*messages, *([reading] if reading else []))
        return bytes(reading) if reading else b""


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
