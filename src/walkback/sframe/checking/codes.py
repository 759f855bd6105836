"""The rules that `check` knows: stable codes, how bad a breach is, and why the rule exists."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Severity(IntEnum):
    """How bad a finding is; worst first.

    >>> list(walkback.sframe.Severity)
    [<Severity.BROKEN: 0>, <Severity.REFUSED: 1>, <Severity.STOPS: 2>, <Severity.WRONG: 3>, <Severity.ODD: 4>]
    """

    BROKEN = 0
    """The structure contradicts itself: a reader cannot read it as written, and some crash."""
    REFUSED = 1
    """The consumer asked about would not load the section."""
    STOPS = 2
    """The consumer asked about would load the section, and its walk ends, falls back or goes wrong at this place."""
    WRONG = 3
    """It can be read, and what it says cannot be right."""
    ODD = 4
    """It can be read and may be right, and it is not what the format intends."""


@dataclass(frozen=True, slots=True)
class Code:
    """A rule: its stable name, how bad a breach is, and why it exists."""

    name: str
    severity: Severity
    reason: str


# A rule a line: its name and its reason.

_BROKEN = """
header-size: A section is empty or begins with a header of 28 bytes.
header-magic: The magic number 0xdee2 marks SFrame, and shows its byte order.
header-version: The version says which layout everything after the preamble has; 1, 2 and 3 exist.
header-flags: Undefined flag bits are zero: libsframe refuses a section with one, and nobody knows its meaning.
header-abi: The ABI gives the data words their meaning; 1 to 4 exist.
header-byteorder: Each ABI has one byte order, and a consumer on that machine reads no other.
header-auxiliary: The auxiliary header lies inside the section.
index-bounds: The function index lies inside the section. GNU readelf crashes on one that does not.
rows-bounds: The FRE sub-section lies inside the section.
sections-overlap: The function index and the FRE sub-section are different parts, the index first.
row-count: The header's row count is the sum of the functions' counts; readers allocate by it.
function-fre-type: Row starts have 1, 2 or 4 bytes. GNU readelf aborts on any other code.
function-type: Version 3 knows default and flex functions; rows of another type have no meaning.
function-attribute: The attribute record of a version 3 function lies in the FRE sub-section.
function-order: With SORTED, and in linked files of version 1 always, starts rise: readers search by halves.
function-block: A repeating block has a size, by which readers divide.
function-offset: A function's rows begin inside the FRE sub-section.
row-cut-off: Every row ends inside the FRE sub-section.
row-word-size: Data words have 1, 2 or 4 bytes.
row-order: The rows of a function have rising starts: readers stop at the first that starts after the PC.
row-range: A row starts inside its function, or its repeating block.
row-extra-words: A row has no more data words than its ABI gives a meaning to; Linux refuses left-over words.
row-no-words: Version 1 has no rows without data words; later ones mark the outermost frame with them.
flex-words: The data words of a flex row are a control word and an offset for each value, or a single zero.
flex-cfa: The CFA of a flex row is based on a register.
rows-overlap: The rows of different functions are different bytes, or exactly the same.
rows-shared: Functions do not claim more rows than the section has bytes.
"""

_WRONG = """
abi-machine: The ABI of the section is that of the file's machine and byte order.
header-fixed-ra: On AMD64 a call leaves the return address at CFA-8; on the other machines no place is fixed.
header-fixed-fp: No ABI saves the frame pointer at a fixed place in every row.
function-align: On AArch64 and s390x functions start and end at whole instructions.
row-align: On AArch64 and s390x rows start at whole instructions.
saved-together: Return address and frame pointer are saved at different places.
frame-pointer-flag: The flag FRAME_POINTER promises that all functions keep the frame pointer; a walker falls \
back on it.
function-outside-code: A function lies in executable code of its file.
function-overlap: No address belongs to two functions.
function-duplicate: A function stands in the index once.
row-register: A rule names a register of the machine. GNU as writes 536870911 for a frame pointer saved \
relative to some.
row-mangled: Only AArch64 signs return addresses.
saved-above-cfa: Registers are saved below the CFA. GNU as cuts wide offsets in flex rows to one byte: -200 becomes 56.
cfa-below-sp: The CFA is not below what a call leaves. GNU as 2.40 writes rsp+0 for a CFA in r10.
plt-got-row: In `.plt.got` nothing is pushed before the jump: the CFA is rsp+8. GNU ld writes rsp+16.
section-unsorted: The section of a linked file is marked as sorted; others come from linkers that do not know SFrame.
section-pieces: Readers see only the first of several SFrame sections in one, which a linker that does not \
know SFrame makes.
section-type: Since version 2 errata 1 the ELF section has the type SHT_GNU_SFRAME; GNU ld ignores others.
section-flags: The ELF section is loaded, read-only, and once linked not bound to a text section by SHF_LINK_ORDER.
section-tail: A section ends where its FRE sub-section ends.
segment-missing: The loaded section of a linked file has a PT_GNU_SFRAME: consumers at run time find it by nothing else.
segment-place: PT_GNU_SFRAME begins where the section begins.
segment-size: PT_GNU_SFRAME has the size of the section. GNU ld takes the size from before merging.
relocation-stray: A relocation is PC-relative, of the version's width, against a symbol of the file, on a start field.
relocation-missing: In a relocatable file every start field is relocated: nothing else places the function.
relocation-mismatch: Relocations that the linker kept say the same as the fields. GNU ld sorts the index and \
not its relocations.
"""

_ODD = """
index-gap: The sub-sections tile the section: there is nothing between header, index and rows.
rows-gap: Every byte of the FRE sub-section belongs to a function.
rows-same: Functions that share their rows are readable, and no known producer writes them.
function-bits: Unused bits of the info bytes are zero; the pointer-authentication key is AArch64's.
function-remainder: A function of repeating blocks has a whole number of them.
saved-align: Registers are saved at multiples of 8.
fp-lost: Where the CFA is based on FP, the caller's FP was saved. llvm-mc writes such a row without rules.
function-padding: The padding of a version 2 entry is zero.
function-no-rows: No rows say nothing, except of a signal frame. GNU as writes none for `.cfi_startproc \
simple` without rules.
row-at-end: A row starts before its function ends. GNU ld and readelf up to 2.44 abort on one at the end.
row-bits: Unused bits of a row's info byte, and of a flex control word, are zero.
"""

_REFUSED = """
linux-unreadable: Linux refuses a header that it cannot read.
linux-version: Linux reads version 3.
linux-flags: Linux wants SORTED and PCREL.
linux-auxiliary: Linux refuses an auxiliary header.
linux-empty: Linux refuses a section without functions or without rows.
linux-machine: Linux unwinds AMD64, little-endian AArch64 and s390x.
linux-order: Linux refuses functions that are not strictly rising, such as an empty one at another's address.
linux-layout: Linux wants the index before the rows, and both inside the section.
linux-rows: Linux refuses rows that are unreadable, not strictly rising, behind their function, or have left-over words.
linux-flex: Linux wants a register as the base of a flex row's CFA, and no unused bits in a control word.
linux-code: Linux drops a section with a function outside of the one text range that it is registered for.
linux-segment: The section must be loaded and pointed to by PT_GNU_SFRAME.
glibc-unreadable: The C library refuses a header that it cannot read.
glibc-version: The C library (2.42 and later) reads version 2.
glibc-sorted: The C library searches the index by halves and wants it sorted, with SORTED.
glibc-layout: The C library takes the index to follow the header, and the rows to follow the index.
glibc-segment: The C library finds the section by PT_GNU_SFRAME.
glibc-machine: The C library reads its own machine's byte order, and can be built with SFrame for AMD64 and AArch64.
glibc-rows: The C library gives up on a function whose rows it cannot read.
gnu-ld-unreadable: GNU ld drops a section whose header it cannot read.
gnu-ld-type: GNU ld takes SFrame input only from sections of type SHT_GNU_SFRAME, and drops others with exit status 0.
gnu-ld-version: GNU ld (2.46 and later) merges version 3 and drops others with exit status 0.
gnu-ld-pcrel: GNU ld fails on a section without PCREL.
gnu-ld-abi: GNU ld fails on a section of another ABI than the output's.
gnu-ld-decode: GNU ld drops, or crashes on, what libsframe cannot decode.
gnu-ld-relocations: GNU ld needs one relocation for each function.
gnu-ld-object: GNU ld merges SFrame of relocatable files only.
"""

_STOPS = """
glibc-outermost: To the C library a row without words is an error; outermost code has no function.
glibc-signal-code: The C library knows code that signal handlers return to only where it finds no function.
glibc-no-row: The C library falls back where a function has no row for an address.
glibc-call-end: The C library looks return addresses up as they are, and finds what follows on the call.
glibc-uncovered: The C library falls back, for the whole stack, where it finds no function.
glibc-register: The C library follows only return addresses that are saved.
glibc-signed: The C library does not take the signature off a return address.
linux-no-row: Linux drops the whole section when a walk comes to an address of a function that has no row.
linux-innermost: Linux knows registers besides the stack and the frame pointer in the innermost frame only.
linux-call-end: Linux looks return addresses up as they are, and finds what follows on the call.
linux-uncovered: Linux goes by the frame pointer where it finds no function.
"""

CODES = {
    name: Code(name, severity, reason)
    for severity, rules in (
        (Severity.BROKEN, _BROKEN),
        (Severity.REFUSED, _REFUSED),
        (Severity.STOPS, _STOPS),
        (Severity.WRONG, _WRONG),
        (Severity.ODD, _ODD),
    )
    for name, reason in (line.split(": ", 1) for line in rules.strip().splitlines())
}
