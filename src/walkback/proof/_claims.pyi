from walkback.base.arch import Machine
from walkback.proof.sets import ClaimSets

class Claims:
    def __init__(self, sets: ClaimSets, machine: Machine, denies_ends: bool = False) -> None: ...
