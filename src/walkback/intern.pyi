from typing import Any

from walkback.arrays import I32, I64, Numbers

class Interner:
    count: int
    def __init__(self, buffer: Any) -> None: ...
    def first_positions(self) -> I64: ...

def intern_records(records: Numbers) -> tuple[I64, I32]: ...
