"""How long the tests try: usually as long as finds what is wrong, or as long as was promised.

Where a test tries many examples, seeds, schedules or kills, `rounds` says how many. The usual run
has to end within minutes; HEARTHBOT_THOROUGH=1 (`make soak`) has all the rounds.
"""

from __future__ import annotations

import os
from pathlib import Path

# Read while the tests are collected: each of them then runs without any setting of the bot.
THOROUGH = os.environ.get("HEARTHBOT_THOROUGH", "") == "1"

SOAK_ONLY = frozenset(
    line
    for line in Path(__file__).with_name("soak.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
)
"""Ids of tests that run in a thorough run alone, unless they are asked for by name."""


def rounds(usual: int, thorough: int) -> int:
    """How often to try: `usual` times, or `thorough` times in a thorough run."""
    return thorough if THOROUGH else usual
