from walkback.base.arrays import I64

AMD64: int
AARCH64: int
S390X: int
COLUMNS: tuple[str, ...]

def listing(machine: int, code: bytes | memoryview, address: int) -> I64: ...
