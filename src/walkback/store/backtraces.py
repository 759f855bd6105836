"""Backtraces of the Compact Backtrace Format as samples of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from walkback.base.arrays import I64, U64, Numbers, distinct
from walkback.cbf.layout import FrameCode
from walkback.naming.modules import Modules
from walkback.stacks.stacks import End
from walkback.store.builder import Builder, SampleOrigin

if TYPE_CHECKING:
    from walkback.cbf.backtraces import Backtraces
    from walkback.cif.imagemap import ImageMap

OMITTED = "[omitted]"
"""The name of what stands for frames that were left out."""


def add_backtraces(
    builder: Builder,
    backtraces: Backtraces,
    images: ImageMap | None,
    origin: SampleOrigin,
    times: int | Numbers,
    modules: Modules | None = None,
) -> None:
    """Add backtraces, each as a sample of its time; without images addresses stay as they are.

    One of very many frames keeps the innermost, and then does not count as complete.
    """
    found = backtraces.expanded(cut=True)
    count = len(found)
    # A return address is behind the call that it belongs to.
    lookup = found.value - (found.kind == FrameCode.RA).astype(np.uint64)
    module, address = _placed(builder, lookup, images, modules or Modules())
    frames = builder.frames(module, address)
    omitted = found.kind == FrameCode.OMIT
    if omitted.any():
        frames[omitted] = builder.frames(np.array([-1]), np.zeros(1, np.uint64), [OMITTED])[0]
    source = builder.sources([origin])[0]
    builder.add(
        np.zeros(count, np.int64) if isinstance(times, int) else np.broadcast_to(np.asarray(times), count),
        builder.stacks.add(found.first, frames),
        np.ones(count, np.int64),
        np.full(count, source),
        np.where(found.truncated, End.LIMIT, End.COMPLETE),
        since=times if isinstance(times, int) else 0,
    )


def _placed(builder: Builder, lookup: U64, images: ImageMap | None, modules: Modules) -> tuple[I64, U64]:
    """The file that each address is in, and the address as the file counts."""
    module, address = np.full(len(lookup), -1, np.int64), lookup.copy()
    if images is None:
        return module, address
    number = images.locate(lookup)
    for one in distinct(number[number >= 0]).tolist():
        image = images.images[one]
        rows = number == one
        # Where the file is found it says from which address on it counts; else it is taken to count from 0.
        bias = modules[modules.file(image.path or "", image.build_id)].bias(image.base, 0)
        module[rows] = builder.module(image.build_id.hex() if image.build_id else None, image.path)
        address[rows] -= np.uint64(bias)
    return module, address
