"""Entries of a section made by hand, read."""

from __future__ import annotations

from typing import Any

import pytest

from cfibuilder import (
    CfiBuilder,
    cfa,
)
from walkback.base.arch import AMD64, Machine
from walkback.dwarf.decoding import decode
from walkback.dwarf.frames import Frames

AT_START = cfa("def_cfa 7 8; offset 16 1")
PUSH = cfa("advance_loc 1; def_cfa_offset 16")
BOTH = pytest.mark.parametrize("order", ["little", "big"])
KINDS = pytest.mark.parametrize("eh", [True, False], ids=["eh_frame", "debug_frame"])


def read(builder: CfiBuilder, machine: Machine = AMD64, **options: Any) -> Frames:
    data = builder.bytes()
    known: dict[str, Any] = {
        "address": builder.address,
        "byteorder": builder.order,
        "text": builder.text,
        "got": builder.got,
    }
    return decode(data, machine, eh=builder.eh, **known, **options)


def places(frames: Frames) -> list[tuple[int, int]]:
    return list(zip(frames.fdes.start.tolist(), frames.fdes.size.tolist(), strict=True))
