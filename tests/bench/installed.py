"""What stands on the disk to run the bot, and what its command line costs."""

import statistics
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.bench.bench import Bench
from tests.bench.figures import PRODUCT, Figure
from tests.bench.processes import ROOT, cpu_of
from tests.bench.stage import HEARTHBOT

LOCK = ROOT / "requirements.txt"
MODEL_LOCK = ROOT / "requirements-model.txt"


def measure_installed(bench: Bench) -> None:
    """The packages of the run-time lock, as they lie in this environment; bytecode is not counted.

    Neither the tests' packages nor the embedded model are counted.
    """
    names = locked(LOCK)
    sizes = {name: _size_mb(name) for name in names}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:4]
    bench.add(
        Figure(
            name="installed",
            unit="MB",
            values={PRODUCT: sum(sizes.values())},
            must=450,
            digits=0,
            note=", ".join(f"{name} {sizes[name]:.0f}" for name in largest)
            + f"; the embedded model {sum(map(_size_mb, locked(MODEL_LOCK))):.0f} more",
        )
    )
    count = {PRODUCT: float(len(names))}
    bench.add(Figure(name="  packages", unit="", values=count, must=115, digits=0))


def measure_help(bench: Bench) -> None:
    """Processor time of `hearthbot --help`, beside that of an empty Python."""
    bench.say("hearthbot --help")
    command = [*HEARTHBOT, "--help"]
    bench.settle()
    cpu = statistics.median(cpu_of(command) for _ in range(5))
    empty = statistics.median(cpu_of([sys.executable, "-c", ""]) for _ in range(5))
    bench.add(
        Figure(
            name="hearthbot --help",
            unit="s CPU",
            values={PRODUCT: cpu},
            must=0.3,
            digits=2,
            note=f"an empty Python takes {empty:.2f}",
        )
    )


def locked(lock: Path) -> list[str]:
    """The packages that a lock file installs on this machine."""
    lines = [line.split("\\")[0].strip() for line in lock.read_text().splitlines()]
    wanted = [Requirement(line) for line in lines if line and not line.startswith(("#", "-"))]
    return [one.name for one in wanted if one.marker is None or one.marker.evaluate()]


def _size_mb(name: str) -> float:
    try:
        found: Distribution = distribution(name)
    except PackageNotFoundError:
        return 0.0
    files = [Path(str(file.locate())) for file in found.files or () if file.suffix != ".pyc"]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6
