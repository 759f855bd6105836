"""Takes away what is replaced and what says so, when nothing needs it any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from walkback.base.locks import locked
from walkback.base.replace import sync_folder
from walkback.store import layout
from walkback.store.parts import Name, Segment, replaced_by
from walkback.store.staging import Staging

if TYPE_CHECKING:
    from walkback.store.folder import StoreFolder


def sweep(folder: StoreFolder) -> int:
    """Take away what is replaced if nobody reads; returns how many blocks have to wait."""
    with Staging(folder) as taken, locked(folder.path / layout.LOCK, wait=False) as alone:
        segments = folder.segments()
        replaced = replaced_by(segments)
        parts = [part for segment in segments for part in segment.parts.items()]
        dead = [(name, path) for name, path in parts if name in replaced and path.exists()]
        if not alone:
            return sum(layout.hour_number(part) is not None for (_, part), _ in dead)
        for name, path in dead:
            taken.take(path, "-".join(name))
        # No block may come back in a crash after what replaces it has gone.
        for place in {path.parent for _, path in dead}:
            sync_folder(place)
        for segment in _empty(segments, replaced):
            taken.take(segment.path, segment.id)
            sync_folder(folder.path)
    return 0


def _empty(segments: Sequence[Segment], replaced: frozenset[Name]) -> list[Segment]:
    """Segments that have nothing left and that no other needs, in the order in which they can go."""
    left = list(segments)
    found: list[Segment] = []
    while segment := next((one for one in left if _can_go(one, left, replaced)), None):
        left.remove(segment)
        found.append(segment)
    return found


def _can_go(segment: Segment, segments: Sequence[Segment], replaced: frozenset[Name]) -> bool:
    """Whether all its blocks are replaced, and what it replaces itself is gone or replaced by others too."""
    others = [one for one in segments if one is not segment]
    elsewhere, present = replaced_by(others), {one.id for one in others}
    return segment.parts.keys() <= replaced and all(
        name in elsewhere or name[0] not in present for name in segment.replaces
    )
