"""How much a run of the tests does.

`make test` sets WALKBACK_TESTS=quick: a sample of what repeats itself, without the peers. `make test-all` sets
WALKBACK_TESTS=change, and does a third of it. Everything else, a plain pytest too, does all of it; `make soak` does as
many rounds as WALKBACK_SOAK says.
"""

from __future__ import annotations

import os

ASKED = os.environ.get("WALKBACK_TESTS", "all")
QUICK = ASKED == "quick"
SHARE = 3 if ASKED == "change" else 1
IS_WHOLE = not QUICK and SHARE == 1
"""Whether all of it is done."""
SOAK = int(os.environ.get("WALKBACK_SOAK", "0"))


def rounds(whole: int, quick: int, share: int = 1) -> int:
    """How often a test repeats itself; `make soak` asks for rounds of which this test does one of `share`."""
    return SOAK // share or (quick if QUICK else max(quick, whole // SHARE))


def examples(whole: int) -> int:
    """How many examples Hypothesis tries."""
    return max(2, whole // 8) if QUICK else max(2, whole // SHARE)
