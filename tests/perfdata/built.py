"""Recordings made by hand, read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import perfbuilder as pb
from perfbuilder import Attr, Builder
from walkback.base.arch import ByteOrder
from walkback.capture.perfdata import Recording
from walkback.capture.perfdata.batch import RecordedBatch
from walkback.naming.modules import Modules

BASE = pb.IP | pb.TID | pb.TIME | pb.CPU | pb.PERIOD
WALKABLE = BASE | pb.REGS_USER | pb.STACK_USER
ORDERS: dict[str, ByteOrder] = {"x86_64": "little", "aarch64": "little", "s390x": "big"}


def read(contents: bytes, tmp_path: Path, **more: Any) -> tuple[Recording, list[RecordedBatch]]:
    path = tmp_path / "perf.data"
    path.write_bytes(contents)
    recording = Recording.open(path, Modules(), **more)
    return recording, list(recording.batches())


def only(contents: bytes, tmp_path: Path, **more: Any) -> tuple[Recording, RecordedBatch]:
    recording, batches = read(contents, tmp_path, **more)
    assert not recording.troubles
    assert len(batches) == 1
    return recording, batches[0]


def walkable(machine: str = "x86_64", **more: Any) -> Builder:
    more = {"sample_type": WALKABLE, "regs_user": pb.MASKS[machine], "stack_user": 64} | more
    return Builder(ORDERS[machine], machine, [Attr(**more)])
