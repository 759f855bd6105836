"""Constants and on-disk shapes of 64-bit ELF, in the words of the System V gABI ("Object Files").

The shapes are NumPy structured types, one for each byte order; field names are the specification's without
their prefix (`sh_offset` is `offset`, and `sh_name`, an offset into a string table, is `name_offset`).
Machine specific numbers come from the psABI supplements of AMD64, AArch64 and s390x.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arch import ByteOrder
from walkback.base.arrays import record_type

ELF_MAGIC = b"\x7fELF"
ARMAG, ARMAG_THIN = b"!<arch>\n", b"!<thin>\n"
"""What archives begin with."""
EI_CLASS, EI_DATA = 4, 5
E_MACHINE = 18
"""Where `e_machine` stands, in files of either class."""
ELFCLASS32, ELFCLASS64 = 1, 2
BYTE_ORDERS: dict[int, ByteOrder] = {1: "little", 2: "big"}
"""EI_DATA: ELFDATA2LSB and ELFDATA2MSB."""

ET_REL, ET_EXEC, ET_DYN, ET_CORE = 1, 2, 3, 4

EM_MIPS, EM_S390, EM_X86_64, EM_AARCH64, EM_RISCV = 8, 22, 62, 183, 243

SHN_UNDEF = 0
SHN_LORESERVE = 0xFF00
SHN_ABS = 0xFFF1
SHN_COMMON = 0xFFF2
SHN_XINDEX = 0xFFFF

# A file with more than 0xff00 sections has real ones numbered like SHN_ABS. Tables of symbols therefore hold
# 32-bit section numbers, in which the reserved ones have moved out of the way.
SHN_RESERVED = 0xFFFF0000
"""What is or-ed into a reserved section number that was read from 16 bits."""
SECTION_ABS = SHN_RESERVED | SHN_ABS
SECTION_COMMON = SHN_RESERVED | SHN_COMMON

SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA = 0, 1, 2, 3, 4
SHT_DYNAMIC, SHT_NOTE, SHT_NOBITS, SHT_REL, SHT_DYNSYM = 6, 7, 8, 9, 11
SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY = 14, 15, 16
SHT_GROUP, SHT_SYMTAB_SHNDX, SHT_RELR = 17, 18, 19
SHT_CREL = 0x40000014
SHT_LLVM_ADDRSIG = 0x6FFF4C03
SHT_GNU_SFRAME = 0x6FFFFFF4
SHT_X86_64_UNWIND = 0x70000001

SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR = 0x1, 0x2, 0x4
SHF_MERGE, SHF_STRINGS, SHF_INFO_LINK, SHF_LINK_ORDER = 0x10, 0x20, 0x40, 0x80
SHF_GROUP, SHF_TLS, SHF_COMPRESSED = 0x200, 0x400, 0x800

ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD = 1, 2

NT_GNU_BUILD_ID = 3

PN_XNUM = 0xFFFF
PT_NULL, PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE, PT_PHDR = 0, 1, 2, 3, 4, 6
PT_GNU_EH_FRAME = 0x6474E550
PT_GNU_PROPERTY = 0x6474E553
PT_GNU_SFRAME = 0x6474E554
PT_GNU_RELRO = 0x6474E552
PF_X, PF_W, PF_R = 1, 2, 4

STB_LOCAL, STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE = 0, 1, 2, 10
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_SECTION, STT_FILE = 0, 1, 2, 3, 4
STT_COMMON, STT_TLS, STT_GNU_IFUNC = 5, 6, 10

DT_NULL, DT_NEEDED, DT_SONAME = 0, 1, 14
DT_PLTGOT, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_INIT, DT_FINI, DT_REL = 3, 4, 5, 6, 7, 12, 13, 17
DT_JMPREL, DT_INIT_ARRAY, DT_FINI_ARRAY, DT_PREINIT_ARRAY, DT_RELR = 23, 25, 26, 32, 36
DT_PLTRELSZ, DT_RELASZ, DT_STRSZ, DT_PLTREL = 2, 8, 10, 20
DT_INIT_ARRAYSZ, DT_FINI_ARRAYSZ, DT_PREINIT_ARRAYSZ = 27, 28, 33
DT_GNU_HASH, DT_VERSYM, DT_VERDEF, DT_VERNEED = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFE
DT_FLAGS_1 = 0x6FFFFFFB
DF_1_PIE = 0x08000000

R_X86_64_NONE, R_X86_64_64, R_X86_64_PC32, R_X86_64_32, R_X86_64_32S, R_X86_64_PC64 = 0, 1, 2, 10, 11, 24
R_X86_64_PLT32, R_X86_64_GOTPCREL, R_X86_64_GOTPCRELX, R_X86_64_REX_GOTPCRELX = 4, 9, 41, 42
R_AARCH64_NONE, R_AARCH64_NONE_WITHDRAWN = 0, 256
R_AARCH64_ABS64, R_AARCH64_ABS32, R_AARCH64_PREL64, R_AARCH64_PREL32 = 257, 258, 260, 261
R_AARCH64_ADR_PREL_LO21, R_AARCH64_ADR_PREL_PG_HI21, R_AARCH64_ADR_PREL_PG_HI21_NC = 274, 275, 276
R_AARCH64_ADD_ABS_LO12_NC, R_AARCH64_TSTBR14, R_AARCH64_CONDBR19, R_AARCH64_JUMP26 = 277, 279, 280, 282
R_AARCH64_CALL26 = 283
R_390_NONE, R_390_32, R_390_PC32, R_390_64, R_390_PC64 = 0, 4, 5, 22, 23
R_390_PC16DBL, R_390_PLT16DBL, R_390_PC32DBL, R_390_PLT32DBL = 17, 18, 19, 20

PC_RELATIVE: dict[tuple[int, int], int] = {
    (EM_X86_64, R_X86_64_PC32): 4,
    (EM_X86_64, R_X86_64_PC64): 8,
    (EM_AARCH64, R_AARCH64_PREL32): 4,
    (EM_AARCH64, R_AARCH64_PREL64): 8,
    (EM_S390, R_390_PC32): 4,
    (EM_S390, R_390_PC64): 8,
}
"""(e_machine, relocation type) of `S + A - P`, and the bytes it writes."""

ABSOLUTE: dict[tuple[int, int], int] = {
    (EM_X86_64, R_X86_64_64): 8,
    (EM_X86_64, R_X86_64_32): 4,
    (EM_X86_64, R_X86_64_32S): 4,
    (EM_AARCH64, R_AARCH64_ABS64): 8,
    (EM_AARCH64, R_AARCH64_ABS32): 4,
    (EM_S390, R_390_32): 4,
    (EM_S390, R_390_64): 8,
}
"""(e_machine, relocation type) of `S + A`, and the bytes it writes."""

NO_RELOCATION = {
    (EM_X86_64, R_X86_64_NONE),
    (EM_AARCH64, R_AARCH64_NONE),
    (EM_AARCH64, R_AARCH64_NONE_WITHDRAWN),
    (EM_S390, R_390_NONE),
}
"""(e_machine, relocation type) of entries that do nothing."""


def _shapes(fields: str) -> dict[ByteOrder, np.dtype[np.void]]:
    shape = record_type(fields)
    return {"little": shape.newbyteorder("<"), "big": shape.newbyteorder(">")}


ELF_HEADER = _shapes(
    "ident V16, type u2, machine u2, version u4, entry u8, phoff u8, shoff u8, flags u4, ehsize u2, "
    "phentsize u2, phnum u2, shentsize u2, shnum u2, shstrndx u2"
)

SECTION_HEADER = _shapes(
    "name_offset u4, type u4, flags u8, addr u8, offset u8, size u8, link u4, info u4, addralign u8, entsize u8"
)

PROGRAM_HEADER = _shapes("type u4, flags u4, offset u8, vaddr u8, paddr u8, filesz u8, memsz u8, align u8")

SYMBOL = _shapes("name_offset u4, info u1, other u1, shndx u2, value u8, size u8")

COMPRESSION_HEADER = _shapes("type u4, reserved u4, size u8, addralign u8")

REL = _shapes("offset u8, info u8")
RELA = _shapes("offset u8, info u8, addend i8")
DYNAMIC = _shapes("tag i8, value u8")
