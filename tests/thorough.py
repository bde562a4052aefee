"""How long the tests try: usually as long as finds what is wrong, or as long as was promised.

Where a test tries many examples, seeds, schedules or kills, `rounds` says how many. The usual run
has to end within minutes; HEARTHBOT_THOROUGH=1 (`make soak`) has all the rounds.
"""

from __future__ import annotations

import os

# Read while the tests are collected: each of them then runs without any setting of the bot.
THOROUGH = os.environ.get("HEARTHBOT_THOROUGH", "") == "1"


def rounds(usual: int, thorough: int) -> int:
    """How often to try: `usual` times, or `thorough` times in a thorough run."""
    return thorough if THOROUGH else usual
