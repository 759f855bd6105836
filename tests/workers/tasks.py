"""Work for the tests of workers, some of which goes wrong."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

Numbers = tuple[range, Path]
"""What is counted, and a folder: as long as that has files, each work takes one away and ends its worker."""


def counted(piece: Numbers) -> Counter[int]:
    """How often there is each number."""
    numbers, folder = piece
    for file in folder.glob("*"):
        try:
            file.unlink()
        except FileNotFoundError:  # another one was faster
            continue
        os._exit(9)
    return Counter(numbers)


def dying(piece: Numbers) -> Counter[int]:
    """It never comes to its end where the folder is there."""
    if piece[1].exists():
        os._exit(9)
    return counted(piece)


def failing(piece: Numbers) -> Counter[int]:
    """It fails in one place, and takes long in others."""
    if 0 in piece[0]:
        raise ZeroDivisionError("there is a 0")
    time.sleep(0.05)
    return Counter(piece[0])


def added(first: Counter[int], second: Counter[int]) -> Counter[int]:
    """Both."""
    return first + second
