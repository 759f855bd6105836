from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from walkback.arrays import I64, Numbers

_Field: TypeAlias = bytes | tuple[str, Numbers] | tuple[Sequence[bytes], Numbers]

class Line:
    start: int
    stop: int
    def __init__(self, *fields: _Field, start: int = 0) -> None: ...

def render(
    head: Line, row: Line | Callable[[int], Line], foot: Line, first_row: I64, rows: I64, between: bytes = b""
) -> Iterator[memoryview]: ...
