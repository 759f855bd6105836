from typing import Any

class Expressions:
    def __init__(self, first: Any, end: Any, data: Any) -> None: ...
