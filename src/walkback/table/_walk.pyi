from collections.abc import Sequence
from typing import TypeAlias

from walkback.base.arrays import I32, I64, U8, U32, U64
from walkback.table.spans import Spans

Disjoint: TypeAlias = tuple[I32, U64, U64, I64]

def compare(
    pieces: Sequence[Disjoint], tables: Sequence[Spans], meanings: Sequence[tuple[I64, U8, U8, U8]]
) -> tuple[I64, U64, U8, U8]: ...
def lay_rows(pieces: Disjoint, table: Spans, merge: bool) -> tuple[I64, U32, U32]: ...
