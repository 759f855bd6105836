"""Assembles ELF files for tests, of either byte order, with the place of every part labelled.

It knows nothing of `walkback.elf.layout`: the shapes stand here a second time, as `struct` formats, so that the
reader is tested against the specification and not against itself.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from walkback.base.arch import ByteOrder

HEADER = {
    "e_type": (16, "H"),
    "e_machine": (18, "H"),
    "e_version": (20, "I"),
    "e_entry": (24, "Q"),
    "e_phoff": (32, "Q"),
    "e_shoff": (40, "Q"),
    "e_flags": (48, "I"),
    "e_ehsize": (52, "H"),
    "e_phentsize": (54, "H"),
    "e_phnum": (56, "H"),
    "e_shentsize": (58, "H"),
    "e_shnum": (60, "H"),
    "e_shstrndx": (62, "H"),
}
SECTION = {
    "sh_name": (0, "I"),
    "sh_type": (4, "I"),
    "sh_flags": (8, "Q"),
    "sh_addr": (16, "Q"),
    "sh_offset": (24, "Q"),
    "sh_size": (32, "Q"),
    "sh_link": (40, "I"),
    "sh_info": (44, "I"),
    "sh_addralign": (48, "Q"),
    "sh_entsize": (56, "Q"),
}
SEGMENT = {
    "p_type": (0, "I"),
    "p_flags": (4, "I"),
    "p_offset": (8, "Q"),
    "p_vaddr": (16, "Q"),
    "p_paddr": (24, "Q"),
    "p_filesz": (32, "Q"),
    "p_memsz": (40, "Q"),
    "p_align": (48, "Q"),
}
SYMBOL_SIZE, RELA_SIZE, REL_SIZE = 24, 24, 16


class Strings:
    """A string table that grows."""

    def __init__(self) -> None:
        self.data = bytearray(b"\0")
        self.known = {"": 0}

    def add(self, text: str) -> int:
        if text not in self.known:
            self.known[text] = len(self.data)
            self.data += text.encode(errors="surrogateescape") + b"\0"
        return self.known[text]


@dataclass
class Section:
    name: str
    data: bytes
    fields: dict[str, int]
    size: int | None = None


@dataclass
class Image:
    """The finished file; `labels` has the offsets of `ehdr`, `shdr`, `phdr` and of each section by name."""

    data: bytearray
    labels: dict[str, int]
    order: str

    def patch(self, place: int, code: str, value: int) -> Image:
        struct.pack_into(self.order + code, self.data, place, value)
        return self

    def header(self, name: str, value: int) -> Image:
        offset, code = HEADER[name]
        return self.patch(offset, code, value)

    def section(self, index: int, name: str, value: int) -> Image:
        offset, code = SECTION[name]
        return self.patch(self.labels["shdr"] + 64 * index + offset, code, value)

    def segment(self, index: int, name: str, value: int) -> Image:
        offset, code = SEGMENT[name]
        return self.patch(self.labels["phdr"] + 56 * index + offset, code, value)

    def __bytes__(self) -> bytes:
        return bytes(self.data)


class ElfBuilder:
    """Collects the parts of a file; `extended` numbers everything the way files with many sections must."""

    def __init__(
        self,
        byteorder: ByteOrder = "little",
        machine: int = 62,
        kind: int = 1,
        *,
        entry: int = 0,
        flags: int = 0,
        extended: bool = False,
    ) -> None:
        self.order = "<" if byteorder == "little" else ">"
        self.header = {"e_type": kind, "e_machine": machine, "e_entry": entry, "e_flags": flags}
        self.extended = extended
        self.sections = [Section("", b"", {})]
        self.segments: list[dict[str, Any]] = []
        self.symbol_tables: dict[int, list[tuple[Any, ...]]] = {}
        self.strings: dict[int, Strings] = {}

    def section(self, name: str, data: bytes = b"", *, kind: int = 1, size: int | None = None, **fields: Any) -> int:
        """A section; other header fields by their names without `sh_`. Returns its number."""
        named = {"sh_type": kind, **{f"sh_{key}": value for key, value in fields.items()}}
        self.sections.append(Section(name, bytes(data), named, size))
        return len(self.sections) - 1

    def code(self, name: str = ".text", size: int = 0x100, addr: int = 0) -> int:
        return self.section(name, bytes(size), flags=6, addr=addr)

    def segment(self, kind: int, section: str, *, flags: int = 4, vaddr: int = 0) -> int:
        """A segment around one section's contents."""
        self.segments.append({"p_type": kind, "p_flags": flags, "p_vaddr": vaddr, "section": section})
        return len(self.segments) - 1

    def symtab(self, name: str = ".symtab", kind: int = 2) -> int:
        strtab = self.section(name.replace("sym", "str"), kind=3)
        index = self.section(name, kind=kind, link=strtab, entsize=SYMBOL_SIZE)
        self.symbol_tables[index] = []
        self.strings[index] = Strings()
        self.symbol(index, "", 0, kind=0, binding=0)
        return index

    def symbol(
        self,
        symtab: int,
        name: str,
        value: int,
        *,
        section: int | tuple[int] = 0,
        size: int = 0,
        kind: int = 2,
        binding: int = 1,
        name_offset: int | None = None,
    ) -> int:
        """A symbol; the sections 0xfff1 and so on are the reserved ones, and a tuple (n,) is surely a real one."""
        offset = self.strings[symtab].add(name) if name_offset is None else name_offset
        entry = (offset, binding << 4 | kind, 0, section, value, size)
        self.symbol_tables[symtab].append(entry)
        return len(self.symbol_tables[symtab]) - 1

    def relocations(
        self,
        target: int,
        symtab: int,
        entries: list[tuple[int, int, int, int]],
        *,
        addends: bool = True,
        name: str | None = None,
    ) -> int:
        """(offset, type, symbol, addend) each, as SHT_RELA or SHT_REL."""
        data = b""
        for offset, kind, symbol, addend in entries:
            data += struct.pack(self.order + "QQ", offset, symbol << 32 | kind)
            data += struct.pack(self.order + "q", addend) if addends else b""
        prefix, number, size = (".rela", 4, RELA_SIZE) if addends else (".rel", 9, REL_SIZE)
        name = name or prefix + self.sections[target].name
        return self.section(name, data, kind=number, link=symtab, info=target, entsize=size)

    def build(self) -> Image:
        for index in list(self.symbol_tables):
            self._finish_symbols(index)
        names = Strings()
        shstrtab = self.section(".shstrtab", kind=3)
        offsets = [names.add(section.name) for section in self.sections]
        self.sections[shstrtab].data = bytes(names.data)
        labels = {"ehdr": 0, "phdr": 64 if self.segments else 0}
        data = bytearray(64 + 56 * len(self.segments))
        for section in self.sections[1:]:
            data += bytes(-len(data) % 8)
            labels[section.name] = len(data)
            data += section.data
        data += bytes(-len(data) % 8)
        labels["shdr"] = len(data)
        data += bytes(64 * len(self.sections))
        image = Image(data, labels, self.order)
        self._write_headers(image, offsets, shstrtab)
        return image

    def _finish_symbols(self, index: int) -> None:
        data, numbers, wide = b"", b"", False
        for name, info, other, section, value, size in self.symbol_tables[index]:
            real = section[0] if isinstance(section, tuple) else section
            extended = isinstance(section, tuple) or (self.extended and 0 < real < 0xFF00)
            stored = 0xFFFF if extended else real
            wide |= extended
            data += struct.pack(self.order + "IBBHQQ", name, info, other, stored, value, size)
            numbers += struct.pack(self.order + "I", real if extended else 0)
        self.sections[index].data = data
        self.sections[self.sections[index].fields["sh_link"]].data = bytes(self.strings[index].data)
        if wide:
            self.section(".symtab_shndx", numbers, kind=18, link=index, entsize=4)

    def _write_headers(self, image: Image, names: list[int], shstrtab: int) -> None:
        order = 1 if self.order == "<" else 2
        image.data[:16] = b"\x7fELF" + bytes((2, order, 1)) + bytes(9)
        count = len(self.sections)
        wide = self.extended or count >= 0xFF00
        for key, value in {
            **self.header,
            "e_version": 1,
            "e_phoff": image.labels["phdr"],
            "e_shoff": image.labels["shdr"],
            "e_ehsize": 64,
            "e_phentsize": 56,
            "e_phnum": 0xFFFF if self.extended else len(self.segments),
            "e_shentsize": 64,
            "e_shnum": 0 if wide else count,
            "e_shstrndx": 0xFFFF if wide else shstrtab,
        }.items():
            image.header(key, value)
        for index, section in enumerate(self.sections[1:], 1):
            size = len(section.data) if section.size is None else section.size
            place = {"sh_offset": image.labels[section.name], "sh_size": size}
            for key, value in {"sh_name": names[index], **place, "sh_addralign": 1, **section.fields}.items():
                image.section(index, key, value)
        if wide:
            image.section(0, "sh_size", count).section(0, "sh_link", shstrtab)
        if self.extended:
            image.section(0, "sh_info", len(self.segments))
        self._write_segments(image)

    def _write_segments(self, image: Image) -> None:
        contents = {section.name: section.data for section in self.sections}
        for index, segment in enumerate(self.segments):
            name = segment["section"]
            size = len(contents[name])
            place = {"p_offset": image.labels[name], "p_filesz": size, "p_memsz": size, "p_align": 1}
            for key, value in {**segment, **place}.items():
                if key != "section":
                    image.segment(index, key, value)
