# The decoder of s390x.

from walkback.code._instruction import Instruction

def decode(code: memoryview, pos: int, end: int, address: int, out: Instruction) -> int: ...
