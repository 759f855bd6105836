"""Waits for events: no outcome of a test depends on how busy the machine is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 600
"""Seconds until a wait has failed; nothing but a hang takes so long."""


def eventually(holds: Callable[..., object]) -> bool:
    """Wait until something holds, and return whether it ever did."""
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
