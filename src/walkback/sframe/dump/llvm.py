"""The tree that `llvm-readobj --sframe` prints, which knows version 2 alone.

The tree begins with the line `SFrame section`; llvm-readobj's lines about the file are not printed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from walkback.base.arrays import I64, Numbers, ranked
from walkback.base.errors import InexpressibleError
from walkback.base.render import LineForm
from walkback.elf import layout as elf_layout
from walkback.sframe import layout
from walkback.sframe.dump.view import View

_VERSION = 2
_FLAGS = (
    ("FDEFuncStartPCRel", layout.F_FDE_FUNC_START_PCREL),
    ("FDESorted", layout.F_FDE_SORTED),
    ("FramePointer", layout.F_FRAME_POINTER),
)
_ABIS = {
    layout.ABI_AARCH64_ENDIAN_BIG: "AArch64EndianBig (0x1)",
    layout.ABI_AARCH64_ENDIAN_LITTLE: "AArch64EndianLittle (0x2)",
    layout.ABI_AMD64_ENDIAN_LITTLE: "AMD64EndianLittle (0x3)",
}
_AARCH64 = {layout.ABI_AARCH64_ENDIAN_BIG, layout.ABI_AARCH64_ENDIAN_LITTLE}
_RELOCATION_NAMES = {
    (elf_layout.EM_X86_64, elf_layout.R_X86_64_PC32): "R_X86_64_PC32",
    (elf_layout.EM_AARCH64, elf_layout.R_AARCH64_PREL32): "R_AARCH64_PREL32",
    (elf_layout.EM_S390, elf_layout.R_390_PC32): "R_390_PC32",
}


def dump(view: View) -> Iterator[bytes | memoryview]:
    """The header and every chosen function."""
    section = view.section
    if section.version != _VERSION:
        message = f"llvm-readobj prints version 2 only, and this is version {section.version}"
        raise InexpressibleError(message, file=view.source.file, section=view.source.name)
    yield _header(view).encode("utf-8", "surrogateescape")
    addresses = view.row_addresses(section.code_address)

    def row(rows: slice, texts: list[bytes], which: Numbers) -> LineForm:
        return LineForm(
            b"        Frame Row Entry {\n          Start Address: 0x",
            ("HEX", addresses[rows]),
            b"\n",
            (texts, which),
            b"        }\n",
            start=rows.start,
        )

    def texts(shapes: list[int]) -> list[bytes]:
        return [_shape_text(view, shape) for shape in shapes]

    yield from view.render(lambda functions: _head(view, functions), row, texts, LineForm(b"      ]\n    }\n"))
    yield b"  ]\n}\n"


def _header(view: View) -> str:
    section = view.section
    flags = "".join(f"      {name} ({bit:#x})\n" for name, bit in _FLAGS if section.flags & bit)
    ra_use = "" if section.abi_arch == layout.ABI_AMD64_ENDIAN_LITTLE else " (unused)"
    auxiliary = ", ".join(f"0x{byte:X}" for byte in section.auxiliary)
    return (
        f"SFrame section '{view.source.name}' {{\n"
        "  Header {\n"
        "    Magic: 0xDEE2\n"
        "    Version: V2 (0x2)\n"
        f"    Flags [ (0x{section.flags:X})\n{flags}    ]\n"
        f"    ABI: {_ABIS.get(section.abi_arch, f'0x{section.abi_arch:X}')}\n"
        f"    CFA fixed FP offset (unused): {section.cfa_fixed_fp_offset}\n"
        f"    CFA fixed RA offset{ra_use}: {section.cfa_fixed_ra_offset}\n"
        f"    Auxiliary header length: {len(section.auxiliary)}\n"
        f"    Num FDEs: {section.num_fdes}\n"
        f"    Num FREs: {section.num_fres}\n"
        f"    FRE subsection length: {section.fre_len}\n"
        f"    FDE subsection offset: {section.fdeoff}\n"
        f"    FRE subsection offset: {section.freoff}\n"
        f"    Auxiliary header: [{auxiliary}]\n"
        "  }\n"
        "  Function Index [\n"
    )


def _head(view: View, chosen: I64) -> LineForm:
    """The lines of some functions before their rows."""
    section = view.section
    functions = section.functions
    fre_types = [f"Addr{size} (0x{code:X})" for code, size in enumerate(layout.FRE_START_SIZES)]
    fre_types += [f"0x{code:X}" for code in range(len(fre_types), 16)]
    keys = ["        PAuth Key: A (0x0)\n", "        PAuth Key: B (0x1)\n"]
    if section.abi_arch not in _AARCH64:
        keys = ["", ""]
    infos = [
        f"        FRE Type: {fre_types[info & 15]}\n"
        f"        FDE Type: {'PCMask (0x1)' if info >> 4 & 1 else 'PCInc (0x0)'}\n"
        f"{keys[info >> 5 & 1]}"
        f"        Raw: 0x{info:X}\n"
        "      }\n"
        f"      Repetitive block size{'' if info >> 4 & 1 else ' (unused)'}: 0x"
        for info in range(256)
    ]
    starts, closings, which = _start_texts(view, chosen)
    return LineForm(
        b"    FuncDescEntry [",
        ("decimal", chosen),
        b"] {\n      PC",
        (starts, which),
        b"0x",
        ("HEX", section.code_address[chosen]),
        (closings, which),
        b"\n      Size: 0x",
        ("HEX", functions.size[chosen]),
        b"\n      Start FRE Offset: 0x",
        ("HEX", functions.fre_offset[chosen]),
        b"\n      Num FREs: ",
        ("decimal", functions.num_fres[chosen]),
        b"\n      Info {\n",
        ([text.encode() for text in infos], functions.info[chosen]),
        ("HEX", functions.rep_size[chosen]),
        b"\n      Padding2: 0x",
        ("HEX", functions.padding[chosen]),
        b"\n      FREs [\n",
    )


def _start_texts(view: View, chosen: I64) -> tuple[list[bytes], list[bytes], np.ndarray]:
    """What stands around a start address: in relocatable files the relocation and its symbol."""
    section, source = view.section, view.source
    which = np.zeros(len(chosen), np.int64)
    starts, closings = [b": "], [b""]
    if not source.relocatable or source.elf is None:
        return starts, closings, which
    field = view.piece.position + section.fde_start + chosen * section.fde_size
    table = source.relocations
    at = np.searchsorted(table["offset"], field.astype(np.uint64))
    there = at < len(table)
    there[there] = table["offset"][at[there]] == field[there].astype(np.uint64)
    kinds, which[there] = ranked(table[["type", "symbol", "symtab"]][at[there]])
    which[there] += 1
    for kind, symbol, symtab in kinds.tolist():
        name = _RELOCATION_NAMES.get((source.elf.machine, kind), f"Unknown ({kind})")
        starts.append(
            f" {{\n        Relocation: {name}\n"
            f"        Symbol Name: {_symbol_name(view, symtab, symbol)}\n"
            "        Start Address: ".encode("utf-8", "surrogateescape")
        )
        closings.append(b"\n      }")
    return starts, closings, which


def _symbol_name(view: View, symtab: int, symbol: int) -> str:
    """A symbol's name; a section symbol has its section's. Damaged files can name one that there is not."""
    elf = view.source.elf
    assert elf is not None
    symbols = elf.symbols(symtab)
    if symbol >= len(symbols):
        return f"<symbol {symbol}>"
    entry = symbols[symbol]
    if int(entry["info"]) & 15 == elf_layout.STT_SECTION:
        return elf.section_name(int(entry["section"]))
    return elf.string(int(elf.sections["link"][symtab]), int(entry["name_offset"]))


def _shape_text(view: View, shape: int) -> bytes:
    """The lines of a row after its start."""
    section = view.section
    known = section.abi_arch in _ABIS
    info, words = int(section.shapes.info[shape]), view.shape_words(shape)
    code = info >> 5 & 3
    text = (
        f"          Return Address Signed: {'Yes' if info & layout.FRE_RA_MANGLED else 'No'}\n"
        f"          Offset Size: B{layout.FRE_WORD_SIZES[code]} (0x{code:X})\n"
        f"          Base Register: {'SP (0x1)' if info & 1 else 'FP (0x0)'}\n"
    )
    if words:
        text += f"          CFA Offset: {words.pop(0)}\n"
    if section.abi_arch == layout.ABI_AMD64_ENDIAN_LITTLE:
        text += f"          RA Offset: {section.cfa_fixed_ra_offset}\n"
    elif known and words:
        text += f"          RA Offset: {words.pop(0)}\n"
    if known and words:
        text += f"          FP Offset: {words.pop(0)}\n"
    if words:
        text += f"          Extra Offsets: [{', '.join(map(str, words))}]\n"
    return text.encode()
