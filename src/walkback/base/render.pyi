from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from walkback.base.arrays import I64, Numbers

_Field: TypeAlias = bytes | tuple[str, Numbers] | tuple[Sequence[bytes], Numbers]

class LineForm:
    start: int
    stop: int
    def __init__(self, *fields: _Field, start: int = 0) -> None: ...

def render(
    head: LineForm,
    row: LineForm | Callable[[int], LineForm],
    foot: LineForm,
    first_row: I64,
    rows: I64,
    between: bytes = b"",
) -> Iterator[memoryview]: ...
