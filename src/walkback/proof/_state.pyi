from walkback.base.arch import Machine
from walkback.proof._registers import Registers

class State(Registers):
    def __init__(
        self, machine: Machine, preserved: int, watched: int, saved: int = 0, aligned: bool = True
    ) -> None: ...
