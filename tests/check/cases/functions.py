"""Cases of functions."""

from __future__ import annotations

from check.cases.making import PUSHED, Case, Cases, at, changed, fine, in_file, one
from sframebuilder import AARCH64, PCREL, row
from sframefiles import PC64, SIZE, TEXT, linked, placing, relocatable, small

case = Cases()


case("function-fre-type", lambda: at(one(PUSHED, fre_type=3), "attribute0.info", 0))
case("function-fre-type", lambda: fine(one(PUSHED, fre_type=2)))
case("function-type", lambda: at(one(PUSHED, info2=2), "attribute0.info2", 0))
case("function-type", lambda: fine(one([row(0, 0, [0x39, 8])], flex=True)))


@case.of("function-attribute")
def _() -> Case:
    _, labels = small().assemble()
    place = labels["end"] - 4
    return Case(changed(2, fre_offset=place - labels["rows"]).bytes(), place, 2)


@case.of("function-attribute")
def _() -> Case:
    builder = small()
    builder.functions[2].rows = []  # its record is the last thing in the section
    return fine(builder)


@case.of("function-order")
def _() -> Case:
    builder = small(functions=2)
    builder.functions.reverse()
    return at(builder, "fde1.start", 1)


@case.of("function-order")
def _() -> Case:
    builder = small(flags=PCREL)
    builder.functions.reverse()
    return fine(builder)


@case.of("function-order")
def _() -> Case:
    builder = small(1, functions=2, flags=0)  # version 1 is always sorted
    builder.functions.reverse()
    return at(builder, "fde1.start", 1)


case("function-block", lambda: at(one(PUSHED, mask=True, rep_size=0), "attribute0.info", 0))
case("function-block", lambda: fine(one(PUSHED, mask=True, rep_size=16)))
case("function-block", lambda: fine(one(PUSHED, mask=True, version=1)))  # which carries no size


@case.of("function-offset")
def _() -> Case:
    builder = changed(2, small(2), fre_offset=1 << 16, num_fres=0)
    return at(builder, "fde2.fre_offset", 2)


@case.of("function-offset")
def _() -> Case:
    _, labels = small(2).assemble()
    return fine(changed(2, small(2), fre_offset=labels["end"] - labels["rows"], num_fres=0))


case("function-bits", lambda: at(changed(1, small(2), info=0x40), "fde1.info", 1))
case("function-bits", lambda: at(changed(1, info2=0x20), "attribute1.info2", 1))
case(
    "function-bits", lambda: at(changed(1, info=0x20), "attribute1.info", 1)
)  # AMD64 has no pointer-authentication keys
case("function-bits", lambda: fine(one([row(0, 1, [0])], abi=AARCH64, key_b=True)))
case("function-padding", lambda: at(changed(1, small(2), padding=1), "fde1.padding", 1))
case("function-padding", lambda: fine(small(2)))
case("function-no-rows", lambda: at(one([]), "fde0.start", 0))
case("function-no-rows", lambda: fine(one([], signal=True)))


@case.of("function-overlap")
def _() -> Case:
    builder = small()
    builder.functions[0].size = SIZE + 1
    return at(builder, "fde1.start", 1)


@case.of("function-overlap")
def _() -> Case:
    builder = small()
    builder.functions[1].start = TEXT + 8  # an empty one overlaps nothing
    builder.functions[1].size = 0
    builder.functions[1].rows = [row(0, 1, [8])]
    return fine(builder)


@case.of("function-duplicate")
def _() -> Case:
    builder = small()
    builder.functions[1].start = TEXT
    return at(builder, "fde1.start", 1)


@case.of("function-duplicate")
def _() -> Case:
    builder = small()
    builder.functions[1].start = TEXT + 1  # an overlap, not a duplicate
    return fine(builder)


@case.of("function-outside-code")
def _() -> Case:
    builder = small()
    builder.functions[2].start = TEXT + 0x100 - SIZE + 1
    return in_file(builder, "fde2.start", 2)


@case.of("function-outside-code")
def _() -> Case:
    builder = small()
    builder.functions[2].start = TEXT + 0x100 - SIZE
    return fine(linked(builder.bytes()))


@case.of("function-outside-code")
def _() -> Case:
    elf = relocatable(small(), [*placing(3, 2), (0x3C, PC64, ".text", 0x100 - SIZE + 1)])
    return Case(elf, 0x3C, 2)


case("function-outside-code", lambda: fine(relocatable(small(), [*placing(3, 2), (0x3C, PC64, ".text", 0x100 - SIZE)])))
