from typing import Any

from walkback.arch import Machine
from walkback.arrays import I64, U8, U16, U32
from walkback.dwarf.frames import Cies, Fdes

REGISTERS: int

def read(
    buffer: Any,
    big: bool,
    address: int,
    text: int,
    got: int,
    cies: Cies,
    fdes: Fdes,
    machine: Machine,
    is_aarch64: bool,
    most: int,
) -> tuple[U32, tuple[I64, U16, U8, I64], int, int]: ...
