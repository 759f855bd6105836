from walkback.code._instruction import Instruction

SLACK: int

def decode(machine: int, code: memoryview, pos: int, end: int, address: int, out: Instruction) -> int: ...
