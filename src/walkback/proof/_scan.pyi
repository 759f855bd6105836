from typing import NamedTuple

from walkback.base.arrays import U8, U16, U64, Bools
from walkback.proof._code import Code
from walkback.proof.image import Image
from walkback.proof.ranges import Ranges

class Scan(NamedTuple):
    returns: Bools
    written: U64
    kept: U64
    ways: U64
    calls: U64
    called: Bools
    taken: Bools
    named: U64
    targets: U8
    brief: U16

def scan(code: Code, image: Image, ranges: Ranges, sp: int) -> Scan: ...
