from walkback.base.arrays import I64

COLUMNS: tuple[str, ...]

def listing(machine: int, code: bytes | memoryview, address: int) -> I64: ...
