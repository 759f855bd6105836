"""The rules that `check` knows: stable codes, how bad a breach is, and why the rule exists."""

from __future__ import annotations

from enum import IntEnum

from walkback.base.dataclass import dataclass


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
    """The consumer asked about would load the section, but its walk ends, falls back or goes wrong at this place."""
    WRONG = 3
    """The section can be read, but its contents cannot be right."""
    ODD = 4
    """The section can be read and may be right, but it is not what the format intends."""


@dataclass(frozen=True, slots=True)
class Code:
    """A rule: its stable name, how bad a breach is, and why it exists."""

    name: str
    severity: Severity
    reason: str


# A rule a line: its name and its reason.

_BROKEN = """
header-size: A section is empty or begins with a 28-byte header.
header-magic: The magic number 0xdee2 marks SFrame and reveals its byte order.
header-version: The version defines the layout of everything after the preamble; 1, 2 and 3 exist.
header-flags: Undefined flag bits are zero: libsframe refuses a section that sets one, and its meaning is unknown.
header-abi: The ABI defines the meaning of the data words; 1 to 4 exist.
header-byteorder: Each ABI has one byte order, and a consumer on that machine reads no other.
header-auxiliary: The auxiliary header lies inside the section.
index-bounds: The function index lies inside the section. GNU readelf crashes if it does not.
rows-bounds: The FRE sub-section lies inside the section.
sections-overlap: The function index and the FRE sub-section do not overlap, and the index comes first.
row-count: The header's row count equals the sum of the functions' counts; readers allocate memory by it.
function-fre-type: Row starts have 1, 2 or 4 bytes. GNU readelf aborts on any other code.
function-type: Version 3 defines default and flex functions; rows of any other type have no meaning.
function-attribute: The attribute record of a version 3 function lies in the FRE sub-section.
function-order: With SORTED, and always in linked files of version 1, function starts ascend: readers use binary search.
function-block: A repeating block has a nonzero size, because readers divide by it.
function-offset: A function's rows begin inside the FRE sub-section.
row-cut-off: Every row ends inside the FRE sub-section.
row-word-size: Data words have 1, 2 or 4 bytes.
row-order: The starts of a function's rows ascend: readers stop at the first row that starts after the PC.
row-range: A row starts inside its function, or inside its repeating block.
row-extra-words: A row has no more data words than its ABI defines; Linux refuses extra words.
row-no-words: Version 1 has no rows without data words; later versions mark the outermost frame with them.
flex-words: The data words of a flex row are a control word and an offset for each value, or a single zero.
flex-cfa: The CFA of a flex row is based on a register.
rows-overlap: The rows of two functions are separate bytes, or exactly the same bytes.
rows-shared: Functions do not claim more rows than the section has bytes.
"""

_WRONG = """
abi-machine: The section's ABI matches the file's machine and byte order.
header-fixed-ra: On AMD64 a call leaves the return address at CFA-8; on the other machines no offset is fixed.
header-fixed-fp: No ABI saves the frame pointer at a fixed offset in every row.
function-align: On AArch64 and s390x functions start and end at whole instructions.
row-align: On AArch64 and s390x rows start at whole instructions.
saved-together: The return address and the frame pointer are saved at different offsets.
frame-pointer-flag: The FRAME_POINTER flag promises that all functions keep the frame pointer; walkers fall back to it.
function-outside-code: A function lies in executable code of its file.
function-overlap: No address belongs to two functions.
function-duplicate: A function appears in the index once.
row-register: A rule uses registers that the machine has. GNU as writes 536870911 for some register-relative saves of \
FP.
row-mangled: Only AArch64 signs return addresses.
saved-above-cfa: Registers are saved below the CFA. GNU as truncates wide offsets in flex rows to a byte: -200 becomes \
56.
cfa-below-sp: The CFA is at least as far above SP as a call leaves it. GNU as 2.40 writes rsp+0 for a CFA in r10.
plt-got-row: In `.plt.got` nothing is pushed before the jump: the CFA is rsp+8. GNU ld writes rsp+16.
section-unsorted: The section of a linked file is marked as sorted; linkers without SFrame support leave it unsorted.
section-pieces: A section contains one SFrame section. Linkers without SFrame support concatenate several; most \
readers see only the first.
section-type: Since version 2 errata 1 the ELF section has the type SHT_GNU_SFRAME; GNU ld ignores other types.
section-flags: The ELF section is loaded and read-only, and in linked files not tied to a text section by \
SHF_LINK_ORDER.
section-tail: A section ends where its FRE sub-section ends.
segment-missing: A loaded section in a linked file has a PT_GNU_SFRAME: run-time consumers find it by nothing else.
segment-place: PT_GNU_SFRAME begins where the section begins.
segment-size: PT_GNU_SFRAME has the size of the section. GNU ld uses the size from before merging.
relocation-stray: A relocation is PC-relative, of the version's width, against a symbol of the file, on a start field.
relocation-missing: In a relocatable file every start field has a relocation: nothing else locates the function.
relocation-mismatch: Relocations kept by the linker agree with the fields. GNU ld sorts the index but not its \
relocations.
"""

_ODD = """
index-gap: The sub-sections tile the section: there are no gaps between header, index and rows.
rows-gap: Every byte of the FRE sub-section belongs to a function.
rows-same: Functions have their own rows. Readers accept shared rows, but no known producer writes them.
function-bits: Unused bits of the info bytes are zero; only AArch64 uses the pointer-authentication key.
function-remainder: A function of repeating blocks has a whole number of blocks.
saved-align: Registers are saved at multiples of 8.
fp-lost: Where the CFA is based on FP, the caller's FP was saved. llvm-mc writes such a row without rules.
function-padding: The padding of a version 2 entry is zero.
function-no-rows: A function has rows, unless it is a signal frame. GNU as writes none for `.cfi_startproc simple` \
without rules.
row-at-end: A row starts before its function ends. GNU ld and readelf up to 2.44 abort on a row at the end.
row-bits: Unused bits of a row's info byte, and of a flex control word, are zero.
"""

_REFUSED = """
linux-unreadable: Linux refuses a header that it cannot read.
linux-version: Linux reads version 3.
linux-flags: Linux requires SORTED and PCREL.
linux-auxiliary: Linux refuses an auxiliary header.
linux-empty: Linux refuses a section without functions or without rows.
linux-machine: Linux unwinds AMD64, little-endian AArch64 and s390x.
linux-order: Linux refuses functions whose starts do not strictly ascend, such as an empty one at another's address.
linux-layout: Linux requires the index before the rows, and both inside the section.
linux-rows: Linux refuses rows that are unreadable, not strictly ascending, past their function's end, or with extra \
words.
linux-flex: Linux requires a register as the base of a flex row's CFA, and no unused bits in a control word.
linux-code: Linux drops a section with a function outside the one text range it is registered for.
linux-segment: The section must be loaded and PT_GNU_SFRAME must point to it.
linux-kernel-unreadable: The arm64 kernel refuses a header that it cannot read.
linux-kernel-version: The arm64 kernel reads version 3.
linux-kernel-flags: The arm64 kernel requires SORTED and PCREL.
linux-kernel-auxiliary: The arm64 kernel refuses an auxiliary header.
linux-kernel-empty: The arm64 kernel refuses a section without functions or without rows.
linux-kernel-machine: Only the kernel of little-endian AArch64 reads its own SFrame.
linux-kernel-order: The arm64 kernel uses binary search on the index.
linux-kernel-layout: The arm64 kernel requires the index before the rows, and both inside the section.
linux-kernel-rows: The arm64 kernel gives up on a function whose rows it cannot read.
linux-kernel-flex: The arm64 kernel gives up on a flex row whose CFA has no register as base, or with unused bits set.
glibc-unreadable: The C library refuses a header that it cannot read.
glibc-version: The C library (2.42 and later) reads version 2.
glibc-sorted: The C library uses binary search on the index and requires SORTED.
glibc-layout: The C library assumes that the index follows the header, and the rows follow the index.
glibc-segment: The C library finds the section through PT_GNU_SFRAME.
glibc-machine: The C library reads its own machine's byte order, and can be built with SFrame for AMD64 and AArch64.
glibc-rows: The C library gives up on a function whose rows it cannot read.
gnu-ld-unreadable: GNU ld drops a section whose header it cannot read.
gnu-ld-type: GNU ld accepts SFrame input only from SHT_GNU_SFRAME sections, and drops others with exit status 0.
gnu-ld-version: GNU ld (2.46 and later) merges version 3 and drops other versions with exit status 0.
gnu-ld-pcrel: GNU ld fails on a section without PCREL.
gnu-ld-abi: GNU ld fails on a section whose ABI differs from the output's.
gnu-ld-decode: GNU ld drops, or crashes on, a section that libsframe cannot decode.
gnu-ld-relocations: GNU ld needs one relocation for each function.
gnu-ld-object: GNU ld merges only the SFrame of relocatable files.
"""

_STOPS = """
glibc-outermost: The C library treats a row without words as an error; it expects no function for outermost code.
glibc-signal-code: The C library recognizes the code that signal handlers return to only where it finds no function.
glibc-no-row: The C library falls back where a function has no row for an address.
glibc-call-end: The C library looks up return addresses unchanged, and finds whatever follows the call.
glibc-uncovered: The C library falls back, for the whole stack, where it finds no function.
glibc-register: The C library follows only return addresses that are saved.
glibc-signed: The C library does not strip the signature from a return address.
linux-kernel-outermost: The arm64 kernel treats an outermost frame as an error; its stacks end at a record of their own.
linux-kernel-no-row: The arm64 kernel calls a stack unreliable where a function has no row for an address.
linux-kernel-register: The arm64 kernel follows only rules by SP and FP, and registers that are saved at the CFA.
linux-kernel-uncovered: The arm64 kernel calls a stack unreliable where it finds no function.
linux-no-row: Linux drops the whole section when a walk reaches an address for which its function has no row.
linux-innermost: Linux knows registers other than SP and FP in the innermost frame only.
linux-call-end: Linux looks up return addresses unchanged, and finds whatever follows the call.
linux-uncovered: Linux uses the frame pointer where it finds no function.
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
"""The rules by their codes, the most severe first."""
