from walkback.base.arch import Machine

class State:
    def __init__(
        self, machine: Machine, preserved: int, watched: int, saved: int = 0, aligned: bool = True
    ) -> None: ...
