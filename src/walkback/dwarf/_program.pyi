from walkback.base.arrays import I64, U8, U32, U64
from walkback.dwarf._instruction import ProgramReader
from walkback.dwarf.frames import Cies, Fdes

def interpret(reader: ProgramReader, cies: Cies, fdes: Fdes, sp: int, fp: int) -> tuple[I64, U32, U32, U8, U64]: ...
