from walkback.base.arrays import I64, U64

WIDTH: int

def follow(
    memory: memoryview, start: int, address: int, shape: I64, big: bool, found: U64, used: int
) -> tuple[int, int]: ...
