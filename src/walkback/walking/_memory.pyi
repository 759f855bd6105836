from typing import Any

class Segments:
    def __init__(self, columns: dict[str, Any], big: bool) -> None: ...
