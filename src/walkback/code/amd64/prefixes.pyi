DATA_16: int
REP: int
REPNE: int
REX_B: int
REX_B4: int
REX_X: int
REX_X4: int
REX_R: int
REX_R4: int
REX_W: int
REX: int
ANY_REX: int
ELSEWHERE: int
OTHER: int
ADDRESS_32: int
BASE: int
TO_INDEX: int
TO_REG: int
VVVV: int
REX2: int
EVEX: int
NEW_DATA: int
KEEPS_FLAGS: int
PREFIXES: dict[int, int]

def rex(bits: int) -> int: ...
