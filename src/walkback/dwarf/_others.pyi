from walkback.base.arrays import I64, U8, U16, U32
from walkback.dwarf._instruction import ProgramReader
from walkback.dwarf.frames import Cies, Fdes

REGISTERS: int

def read(
    reader: ProgramReader, cies: Cies, fdes: Fdes, sp: int, fp: int, most: int
) -> tuple[U32, tuple[I64, U16, U8, I64], int, int]: ...
