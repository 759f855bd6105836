import numpy as np
import numpy.typing as npt

from walkback.base.arrays import I32, I64, U16, U32, U64

def scan(
    data: memoryview | npt.NDArray[np.uint8], position: int, end: int, big: bool, most: int
) -> tuple[U32, U16, I64, I64, int, int]: ...
def identify(
    words: memoryview | U64,
    big: bool,
    kind: U32,
    offset: I64,
    size: I64,
    ids: U64,
    event_of_id: I32,
    id_at: int,
    id_back: int,
    time_at: I64,
    time_back: I64,
) -> tuple[I32, U64]: ...
def gather(data: memoryview | U64, offset: I64, size: I64, start: I64, target: U64) -> None: ...
