from walkback.base.arrays import U16
from walkback.base.growing import Growing
from walkback.proof._walk import Walk

class Leaving:
    def __init__(self, walk: Walk, seen: U16, tails: Growing) -> None: ...
