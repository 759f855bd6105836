from typing import Any

from walkback.arch import Machine
from walkback.arrays import I64, U8, U32, U64
from walkback.dwarf.frames import Cies, Fdes

WORDS: int

def interpret(
    buffer: Any,
    big: bool,
    address: int,
    text: int,
    got: int,
    cies: Cies,
    fdes: Fdes,
    machine: Machine,
    is_aarch64: bool,
) -> tuple[I64, U32, U32, U8, U64]: ...
