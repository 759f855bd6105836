KIND_MASK: int
ID_SHIFT: int
ID_MASK: int
OFFSET_SHIFT: int

def made(kind: int, number: int, offset: int) -> int: ...
def moved(value: int, offset: int) -> int: ...
