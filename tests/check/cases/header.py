"""Cases of the header and of where the parts of a section are."""

from __future__ import annotations

from check.cases.making import Case, Cases, at, fine
from sframebuilder import AARCH64, PCREL, S390X, SORTED, SFrameBuilder
from sframefiles import small

case = Cases()


# The header


case("header-size", lambda: Case(b"\xe2\xde\x03\x05\x03\0\xf8\0", 0))
case("header-size", lambda: fine(SFrameBuilder(3)))
case("header-magic", lambda: Case(b"\xe2\xdf" + small().bytes()[2:], 0))
case("header-magic", lambda: fine(small(order="big", abi=1, fixed_ra=0)))


@case.of("header-version")
def _() -> Case:
    data, labels = small().assemble()
    return Case(data[:2] + b"\4" + data[3:], labels["version"])


case("header-version", lambda: fine(small(1)))
case("header-flags", lambda: at(small(3, flags=SORTED | PCREL | 2), "flags"))
case("header-flags", lambda: at(small(2, flags=SORTED | 8), "flags"))
case("header-flags", lambda: fine(small(2, flags=SORTED | PCREL | 2)))
case("header-abi", lambda: at(small(abi=5), "abi_arch"))
case("header-abi", lambda: fine(small(abi=S390X, order="big")))
case("header-byteorder", lambda: at(small(order="big"), "magic"))
case("header-byteorder", lambda: fine(small(order="big", abi=1)))
case("header-auxiliary", lambda: at(small(auxhdr_len=255), "auxhdr_len"))
case("header-auxiliary", lambda: fine(small(auxiliary=b"four")))
case("header-fixed-ra", lambda: at(small(fixed_ra=-16), "cfa_fixed_ra_offset"))
case("header-fixed-ra", lambda: fine(small(abi=AARCH64, fixed_ra=0)))
case("header-fixed-fp", lambda: at(small(fixed_fp=-16), "cfa_fixed_fp_offset"))
case("header-fixed-fp", lambda: fine(small(fixed_fp=0)))


# The parts


case("index-bounds", lambda: at(small(num_fdes=40), "num_fdes"))
case("index-bounds", lambda: fine(SFrameBuilder(3, fdeoff=0xFFFF)))


@case.of("rows-bounds")
def _() -> Case:
    builder = small()
    return at(small(fre_len=len(builder.bytes()) - 0x1C - 3 * 16 + 1), "fre_len")


@case.of("rows-bounds")
def _() -> Case:
    builder = small()
    return fine(small(fre_len=len(builder.bytes()) - 0x1C - 3 * 16))


case("sections-overlap", lambda: at(small(freoff=3 * 16 - 1), "fdeoff"))
case("sections-overlap", lambda: at(small(rows_first=True), "freoff"))  # libsframe refuses this order too
case("sections-overlap", lambda: fine(small(between=b"\0")))
case("index-gap", lambda: at(small(before_index=b"gap"), "auxiliary"))
case("index-gap", lambda: fine(small(auxiliary=b"gap")))


@case.of("rows-gap")
def _() -> Case:
    builder = small()
    builder.functions[1].before = b"gap"
    data, labels = builder.assemble()
    return Case(data, labels["attribute1.num_fres"] - 3)


case("rows-gap", lambda: fine(small(tail=b"gap")))
case("section-tail", lambda: at(small(tail=b"rest"), "end"))
case("section-tail", lambda: at(small(tail=bytes(8)), "end"))
case("section-tail", lambda: fine(small(tail=bytes(7))))
case("row-count", lambda: at(small(num_fres=13), "num_fres"))
case("row-count", lambda: fine(small(num_fres=12)))
