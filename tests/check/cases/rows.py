"""Cases of rows."""

from __future__ import annotations

from check.cases.making import Case, Cases, at, changed, fine, one
from sframebuilder import AARCH64, PCREL, S390X, SORTED, SFrameBuilder, row
from sframefiles import SFRAME, SIZE, TEXT, small

case = Cases()


@case.of("row-cut-off")
def _() -> Case:
    # The last function claims one row more, which would begin where the rows end.
    builder = changed(2, small(2), num_fres=5)
    builder.header["num_fres"] = 13
    return at(builder, "end", 2)


@case.of("row-cut-off")
def _() -> Case:
    builder = small(2)
    builder.header["fre_len"] = len(builder.bytes()) - 0x1C - 60 - 1
    return at(builder, "fre2.3", 2)


case("row-cut-off", lambda: fine(small(2)))
case("row-word-size", lambda: at(one([row(0, 1, [8]), row(1, 0, [16], info=0x63)]), "fre0.1", 0))
case("row-word-size", lambda: fine(one([row(0, 1, [8]), row(1, 1, [16], size=4)])))
case("row-order", lambda: at(one([row(0, 1, [8]), row(4, 1, [16]), row(4, 1, [8])]), "fre0.2", 0, 2))
case("row-order", lambda: fine(one([row(0, 1, [8]), row(4, 1, [16]), row(5, 1, [8])])))
case("row-range", lambda: at(one([row(0, 1, [8]), row(SIZE + 1, 1, [8])]), "fre0.1", 0, 1))
case("row-range", lambda: at(one([row(0, 1, [8]), row(16, 1, [8])], mask=True, rep_size=16), "fre0.1", 0, 1))
case("row-range", lambda: fine(one([row(0, 1, [8]), row(SIZE - 1, 1, [8])])))
case("row-at-end", lambda: at(one([row(0, 1, [8]), row(SIZE, 1, [8])]), "fre0.1", 0, 1))
case("row-at-end", lambda: fine(one([row(0, 1, [8])], size=0)))
case("row-extra-words", lambda: at(one([row(0, 1, [8]), row(1, 1, [16, -16, -24])]), "fre0.1", 0, 1))
case("row-extra-words", lambda: at(one([row(0, 0, [0x39, 8, 0, 2, -16, 1])], flex=True), "fre0.0", 0, 0))
case("row-extra-words", lambda: fine(one([row(0, 1, [16, -8, -16])], abi=AARCH64)))
case("row-extra-words", lambda: fine(one([row(0, 0, [0x39, 8, 2, -24, 2, -16])], flex=True)))
case("row-no-words", lambda: at(one([row(0, 0, info=0)], version=1), "fre0.0", 0, 0))
case("row-no-words", lambda: fine(one([row(0, 0, info=0)], version=2)))
case("flex-words", lambda: at(one([row(0, 0, [0x39, 16, 0, 2])], flex=True), "fre0.0", 0, 0))
case("flex-words", lambda: fine(one([row(0, 0, [0x39, 16, 0, 2, -16])], flex=True)))
case("flex-cfa", lambda: at(one([row(0, 0, [2, 16])], flex=True), "fre0.0", 0, 0))
case("flex-cfa", lambda: fine(one([row(0, 0, [0x53, 16])], flex=True)))


@case.of("rows-overlap")
def _() -> Case:
    _, labels = small(2).assemble()
    builder = changed(1, small(2), fre_offset=labels["fre0.2"] - labels["rows"], num_fres=2)
    builder.header["num_fres"] = 10
    return Case(builder.bytes(), labels["fre0.2"], 1)


case("rows-overlap", lambda: fine(shared()))


def shared() -> SFrameBuilder:
    builder = small(2)
    builder.functions[1].shares = 0
    return builder


case("rows-same", lambda: at(shared(), "rows", 1))
case("rows-same", lambda: fine(small(2)))
case("rows-shared", lambda: at(many_shared(3124), "rows", 3123))
case("rows-shared", lambda: fine(many_shared(3123)))


def many_shared(functions: int) -> SFrameBuilder:
    """Functions that all claim the same 31 rows."""
    builder = SFrameBuilder(2, address=SFRAME)
    for number in range(functions):
        rows = [row(start, 1, [8]) for start in range(31)]
        builder.function(TEXT + SIZE * number, SIZE, rows, shares=0 if number else None)
    return builder


case("row-bits", lambda: at(one([row(0, 0, [0x3D, 8])], flex=True), "fre0.0", 0, 0))  # bit 2 of the control word
case("row-bits", lambda: at(one([row(0, 0, [0x39, 8], info=0x05)], flex=True), "fre0.0", 0, 0))
case("row-bits", lambda: at(one([row(0, 0, info=0x21)]), "fre0.0", 0, 0))
case("row-bits", lambda: fine(one([row(0, 0, info=0)])))
case("row-mangled", lambda: at(one([row(0, 1, [8], mangled=True)]), "fre0.0", 0, 0))
case("row-mangled", lambda: fine(one([row(0, 1, [0], mangled=True)], abi=AARCH64)))
case("row-register", lambda: at(one([row(0, 1, [0x39, 8, 0, -5, 8], size=4)], flex=True), "fre0.0", 0, 0))
case("row-register", lambda: fine(one([row(0, 0, [15 << 3 | 1, 8])], flex=True)))
case("saved-align", lambda: at(one([row(0, 1, [16, -12])]), "fre0.0", 0, 0))
case("saved-align", lambda: fine(one([row(0, 1, [16, -16])])))
case("saved-together", lambda: at(one([row(0, 1, [16, -8])]), "fre0.0", 0, 0))
case("saved-together", lambda: fine(one([row(0, 1, [16, -16])])))
case("fp-lost", lambda: at(one([row(0, 0, [16])]), "fre0.0", 0, 0))
case("fp-lost", lambda: fine(one([row(0, 0, [16, -16])])))
case("row-align", lambda: at(one([row(0, 1, [0]), row(6, 1, [16])], abi=AARCH64), "fre0.1", 0, 1))
case("row-align", lambda: fine(one([row(0, 1, [0]), row(8, 1, [16])], abi=AARCH64)))
case("function-align", lambda: at(one([row(0, 1, [0])], size=SIZE + 2, abi=AARCH64), "fde0.start", 0))
case("function-align", lambda: fine(one([row(0, 1, [0])], size=SIZE + 2, abi=S390X, order="big")))
case("function-remainder", lambda: at(one([row(0, 1, [8])], mask=True, rep_size=17), "attribute0.info", 0))
case("function-remainder", lambda: fine(one([row(0, 1, [8])], mask=True, rep_size=16)))
case("saved-above-cfa", lambda: at(one([row(0, 1, [16, 8])]), "fre0.0", 0, 0))
case("saved-above-cfa", lambda: fine(one([row(0, 1, [16, -16])])))
case("cfa-below-sp", lambda: at(one([row(0, 1, [-8])]), "fre0.0", 0, 0))
case("cfa-below-sp", lambda: fine(one([row(0, 0, [-8, -16])])))  # from FP


@case.of("frame-pointer-flag")
def _() -> Case:
    builder = one([row(0, 1, [8]), row(4, 1, [32])], version=2, flags=SORTED | PCREL | 2)
    return at(builder, "fde0.start", 0)


case("frame-pointer-flag", lambda: fine(small(2, flags=SORTED | PCREL | 2)))
case("frame-pointer-flag", lambda: fine(one([row(0, 1, [8])], version=2, flags=SORTED | PCREL | 2)))  # makes no frame
