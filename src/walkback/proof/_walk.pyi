from walkback.base.arrays import I64, U64
from walkback.proof._blocks import Blocks
from walkback.proof._claims import Claims
from walkback.proof._code import Code
from walkback.proof._state import State
from walkback.proof.ranges import Ranges

class Walk(Blocks):
    def __init__(
        self,
        code: Code,
        claims: Claims,
        state: State,
        ranges: Ranges,
        members: I64,
        chain: int = -1,
        free: bool = False,
    ) -> None: ...
    def led_to(self) -> U64: ...
    def by_tables(self) -> U64: ...
