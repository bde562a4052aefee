"""`make bench`: speed and size of the real bot, beside the bare floors in the same run.

The bot is `hearthbot run`, driven through its Telegram channel against stand-ins in other
processes, with the send limits off. Compared with what DESIGN §10 wants (the direct client).
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Mapping

from tests.bench.bench import QUIET_SHARE, Bench
from tests.bench.figures import Report
from tests.bench.installed import measure_help, measure_installed
from tests.bench.processes import ChildDied
from tests.bench.speed import (
    measure_cpu,
    measure_load,
    measure_long,
    measure_plain,
    measure_start,
    measure_tool,
)
from tests.bench.words import measure_words

MEASURES: Mapping[str, Callable[[Bench], None]] = {
    "start": measure_start,
    "plain": measure_plain,
    "tool": measure_tool,
    "cpu": measure_cpu,
    "load": measure_load,
    "words": measure_words,
    "long": measure_long,
    "help": measure_help,
    "installed": measure_installed,
}


def main() -> int:
    """Runs what was asked for. With --check, 1 when something is not what it must be."""
    asked = _arguments()
    # So that all that was started is stopped, also when `timeout` ends us.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    report = _run(asked)
    if asked.json:
        report.print_json()
    else:
        report.print_table()
    return 1 if asked.check and report.missed() else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--only", action="append", choices=MEASURES, metavar="NAME", help=", ".join(MEASURES)
    )
    parser.add_argument("--quick", action="store_true", help="a third of the repetitions")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--check", action="store_true", help="exit 1 when something is missed")
    return parser.parse_args()


def _run(asked: argparse.Namespace) -> Report:
    began = time.monotonic()
    report = Report()
    names = [name for name in MEASURES if not asked.only or name in asked.only]
    with Bench(quick=asked.quick) as bench:
        for number, name in enumerate(names, 1):
            print(f"[{number}/{len(names)}] {name}", file=sys.stderr, flush=True)
            _measured(bench, name, report)
        report.figures = bench.figures
        disturbed = sum(busy > QUIET_SHARE for busy in bench.busy)
        if disturbed:
            report.remarks.append(
                f"Others used the machine at {disturbed} of {len(bench.busy)} measurements: "
                "trust CPU times and ratios, and run it again."
            )
    report.remarks.append(f"Took {time.monotonic() - began:.0f} s.")
    return report


def _measured(bench: Bench, name: str, report: Report) -> None:
    try:
        MEASURES[name](bench)
    except ChildDied as error:
        report.failed.append(name)
        report.remarks.append(f"{name} could not be measured: {error}")
        bench.stop_all()


if __name__ == "__main__":
    sys.exit(main())
