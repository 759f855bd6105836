from typing import Any

from walkback.dwarf.frames import Cies, Fdes

class ProgramReader:
    def __init__(
        self, data: Any, big: bool, address: int, text: int, got: int, is_aarch64: bool, cies: Cies, fdes: Fdes
    ) -> None: ...
