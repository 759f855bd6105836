"""Assembles `.eh_frame` and `.debug_frame` sections field by field, for tests.

It shares no code with walkback: layouts, encodings and instructions stand here a second time, as DWARF and the Linux
Standard Base have them. Every field can be overridden, and has a label that tells where it stands.

    section = CfiBuilder()
    cie = section.cie(cfa("def_cfa 7 8; offset 16 1"))
    section.fde(cie, 0x1000, 32, cfa("advance_loc 1; def_cfa_offset 16"))
    data, labels = section.assemble()
    labels["cie0.version"], labels["fde0.program"]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from walkback.base.arch import ByteOrder

ABSPTR, ULEB128, UDATA2, UDATA4, UDATA8 = 0, 1, 2, 3, 4
SLEB128, SDATA2, SDATA4, SDATA8 = 9, 10, 11, 12
PCREL, TEXTREL, DATAREL, FUNCREL, ALIGNED, INDIRECT, OMIT = 0x10, 0x20, 0x30, 0x40, 0x50, 0x80, 0xFF
PCREL_SDATA4 = PCREL | SDATA4

# The operands: u and s are LEB128 numbers, 1 2 4 8 numbers of so many bytes, b a block of bytes in hexadecimal.
INSTRUCTIONS = {
    "nop": (0x00, ""),
    "advance_loc1": (0x02, "1"),
    "advance_loc2": (0x03, "2"),
    "advance_loc4": (0x04, "4"),
    "offset_extended": (0x05, "uu"),
    "restore_extended": (0x06, "u"),
    "undefined": (0x07, "u"),
    "same_value": (0x08, "u"),
    "register": (0x09, "uu"),
    "remember_state": (0x0A, ""),
    "restore_state": (0x0B, ""),
    "def_cfa": (0x0C, "uu"),
    "def_cfa_register": (0x0D, "u"),
    "def_cfa_offset": (0x0E, "u"),
    "def_cfa_expression": (0x0F, "b"),
    "expression": (0x10, "ub"),
    "offset_extended_sf": (0x11, "us"),
    "def_cfa_sf": (0x12, "us"),
    "def_cfa_offset_sf": (0x13, "s"),
    "val_offset": (0x14, "uu"),
    "val_offset_sf": (0x15, "us"),
    "val_expression": (0x16, "ub"),
    "MIPS_advance_loc8": (0x1D, "8"),
    "negate_ra_state_with_pc": (0x2C, ""),
    "negate_ra_state": (0x2D, ""),
    "GNU_window_save": (0x2D, ""),
    "GNU_args_size": (0x2E, "u"),
    "GNU_negative_offset_extended": (0x2F, "uu"),
}
OPERATIONS = {
    "addr": (0x03, "8"),
    "deref": (0x06, ""),
    "const1u": (0x08, "1"),
    "const1s": (0x09, "1"),
    "const2u": (0x0A, "2"),
    "const2s": (0x0B, "2"),
    "const4u": (0x0C, "4"),
    "const4s": (0x0D, "4"),
    "const8u": (0x0E, "8"),
    "const8s": (0x0F, "8"),
    "constu": (0x10, "u"),
    "consts": (0x11, "s"),
    "dup": (0x12, ""),
    "drop": (0x13, ""),
    "over": (0x14, ""),
    "swap": (0x16, ""),
    "and": (0x1A, ""),
    "minus": (0x1C, ""),
    "mul": (0x1E, ""),
    "neg": (0x1F, ""),
    "plus": (0x22, ""),
    "plus_uconst": (0x23, "u"),
    "shl": (0x24, ""),
    "ge": (0x2A, ""),
    "bregx": (0x92, "us"),
    "deref_size": (0x94, "1"),
    "nop": (0x96, ""),
    "call_frame_cfa": (0x9C, ""),
}


def uleb(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def sleb(value: int) -> bytes:
    out = bytearray()
    while not -64 <= value < 64:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value & 0x7F])


def fixed(value: int, size: int, order: ByteOrder = "little") -> bytes:
    return (value % (1 << 8 * size)).to_bytes(size, order)


def _operand(form: str, text: str, order: ByteOrder) -> bytes:
    match form:
        case "b":
            block = bytes.fromhex(text)
            return uleb(len(block)) + block
        case "u":
            return uleb(int(text, 0))
        case "s":
            return sleb(int(text, 0))
    return fixed(int(text, 0), int(form), order)


def _words(table: dict[str, tuple[int, str]], text: str, order: ByteOrder) -> bytes:
    name, *operands = text.split()
    code, forms = table[name]
    assert len(operands) == len(forms), text
    return bytes([code]) + b"".join(_operand(form, one, order) for form, one in zip(forms, operands, strict=True))


def cfa(text: str, order: ByteOrder = "little") -> bytes:
    """Instructions, by their names without DW_CFA_: `def_cfa 7 8; offset 16 1; advance_loc 4`."""
    out = b""
    for one in filter(None, (part.strip() for part in text.split(";"))):
        name, *operands = one.split()
        if name == "advance_loc":
            out += bytes([0x40 | int(operands[0], 0)])
        elif name == "offset":
            out += bytes([0x80 | int(operands[0])]) + uleb(int(operands[1], 0))
        elif name == "restore":
            out += bytes([0xC0 | int(operands[0])])
        else:
            out += _words(INSTRUCTIONS, one, order)
    return out


def expr(text: str, order: ByteOrder = "little") -> str:
    """An expression, by the names without DW_OP_, as an operand of `cfa`: `breg7 8; deref; lit3`."""
    out = b""
    for one in filter(None, (part.strip() for part in text.split(";"))):
        name, *operands = one.split()
        if name.startswith("lit"):
            out += bytes([0x30 + int(name[3:])])
        elif name.startswith("breg") and name != "bregx":
            out += bytes([0x70 + int(name[4:])]) + sleb(int(operands[0], 0))
        else:
            out += _words(OPERATIONS, one, order)
    return out.hex()


@dataclass
class Entry:
    """A CIE or FDE; `fields` may override how the fields after the identifier are stored."""

    kind: str
    program: bytes
    options: dict[str, Any] = field(default_factory=dict)
    wide: bool | None = None
    length: int | None = None
    identifier: int | None = None
    padding: int = 4
    tail: bytes = b""


class CfiBuilder:
    """Collects entries, and puts the bytes together."""

    def __init__(
        self,
        *,
        eh: bool = True,
        order: ByteOrder = "little",
        address: int = 0,
        wide: bool = False,
        text: int = 0,
        got: int = 0,
    ) -> None:
        self.eh, self.order, self.address, self.wide = eh, order, address, wide
        self.text, self.got = text, got
        self.entries: list[Entry] = []
        self.cies: list[Entry] = []

    def cie(
        self,
        program: bytes = b"",
        *,
        version: int | None = None,
        augmentation: bytes | None = None,
        data: bytes | None = None,
        code_align: int = 1,
        data_align: int = -8,
        ra: int = 16,
        encoding: int | None = None,
        lsda: int = OMIT,
        personality: tuple[int, int] = (ABSPTR, 0x4000),
        address_size: int = 8,
        segment_size: int = 0,
        eh_pointer: int = 0,
        data_length: int | None = None,
        **entry: Any,
    ) -> int:
        """A CIE; returns its number. Without an augmentation it is "zR" in `.eh_frame`, and none in `.debug_frame`."""
        if augmentation is None:
            augmentation = b"zR" if self.eh else b""
        encoding = (PCREL_SDATA4 if b"R" in augmentation else ABSPTR) if encoding is None else encoding
        options = {
            "version": version or (1 if self.eh else 3),
            "augmentation": augmentation,
            "data": data,
            "code_align": code_align,
            "data_align": data_align,
            "ra": ra,
            "encoding": encoding,
            "lsda": lsda,
            "personality": personality,
            "address_size": address_size,
            "segment_size": segment_size,
            "eh_pointer": eh_pointer,
            "data_length": data_length,
        }
        self.entries.append(Entry("cie", program, options, **entry))
        self.cies.append(self.entries[-1])
        return len(self.cies) - 1

    def fde(
        self,
        cie: int,
        start: int,
        size: int,
        program: bytes = b"",
        *,
        raw: bytes | None = None,
        raw_size: bytes | None = None,
        lsda: int = 0,
        data: bytes = b"",
        data_length: int | None = None,
        pointer: int | None = None,
        **entry: Any,
    ) -> None:
        """An FDE; `raw` and `raw_size` are start and size as they are stored, `pointer` the place of its CIE."""
        options = {
            "cie": cie,
            "start": start,
            "size": size,
            "raw": raw,
            "raw_size": raw_size,
            "lsda": lsda,
            "data": data,
            "data_length": data_length,
            "pointer": pointer,
        }
        self.entries.append(Entry("fde", program, options, **entry))

    def zero(self) -> None:
        """A terminator."""
        self.entries.append(Entry("zero", b""))

    def encoded(self, value: int, encoding: int, place: int, *, address_size: int = 8, function: int = 0) -> bytes:
        """A pointer as it is stored at an address."""
        base = {PCREL: place, TEXTREL: self.text, DATAREL: self.got, FUNCREL: function}.get(encoding & 0x70, 0)
        if encoding & 0x70 == ALIGNED:
            return bytes(-place % address_size) + fixed(value, address_size, self.order)
        value -= base
        match encoding & 0x0F:
            case 1:
                return uleb(value % (1 << 64))
            case 9:
                return sleb(value)
            case 0:
                return fixed(value, address_size, self.order)
            case form:
                return fixed(value, {2: 2, 3: 4, 4: 8}.get(form & 7, 8), self.order)

    def assemble(self) -> tuple[bytes, dict[str, int]]:
        """The bytes, and where each part of them stands."""
        out = bytearray()
        labels: dict[str, int] = {}
        numbers = {"cie": 0, "fde": 0, "zero": 0}
        pointers: list[tuple[int, int, Entry]] = []
        for entry in self.entries:
            name = f"{entry.kind}{numbers[entry.kind]}"
            numbers[entry.kind] += 1
            labels[name] = len(out)
            if entry.kind == "zero":
                out += bytes(4)
                continue
            wide = self.wide if entry.wide is None else entry.wide
            size = 8 if wide and not self.eh else 4
            identifier = len(out) + (12 if wide else 4)
            labels[f"{name}.id"] = identifier
            body = bytearray()
            parts = self._cie(entry) if entry.kind == "cie" else self._fde(entry, identifier + size)
            for part, data in parts:
                labels[f"{name}.{part}"] = identifier + size + len(body)
                body += data
            body += bytes(-(identifier + size + len(body)) % entry.padding) + entry.tail
            length = size + len(body) if entry.length is None else entry.length
            out += (b"\xff\xff\xff\xff" + fixed(length, 8, self.order)) if wide else fixed(length, 4, self.order)
            pointers.append((identifier, size, entry))
            out += bytes(size) + body
        for identifier, size, entry in pointers:
            out[identifier : identifier + size] = fixed(
                self._identifier(entry, identifier, size, labels), size, self.order
            )
        labels["end"] = len(out)
        return bytes(out), labels

    def _identifier(self, entry: Entry, identifier: int, size: int, labels: dict[str, int]) -> int:
        if entry.identifier is not None:
            return entry.identifier
        if entry.kind == "cie":
            return 0 if self.eh else (1 << 8 * size) - 1
        place = entry.options["pointer"]
        place = labels[f"cie{entry.options['cie']}"] if place is None else place
        return identifier - place if self.eh else place

    def _cie(self, entry: Entry) -> list[tuple[str, bytes]]:
        options = entry.options
        version, letters, size = options["version"], options["augmentation"], options["address_size"]
        parts = [("version", bytes([version])), ("augmentation", letters + b"\0")]
        if letters == b"eh":
            parts.append(("eh_pointer", fixed(options["eh_pointer"], 8, self.order)))
        if version >= 4:
            parts += [("address_size", bytes([size])), ("segment_size", bytes([options["segment_size"]]))]
        parts += [("code_align", uleb(options["code_align"])), ("data_align", sleb(options["data_align"]))]
        parts.append(("ra", bytes([options["ra"]]) if version == 1 else uleb(options["ra"])))
        data = options["data"]
        if data is None:
            data = b""
            for letter in letters:
                if letter == ord("R"):
                    data += bytes([options["encoding"]])
                elif letter == ord("L"):
                    data += bytes([options["lsda"]])
                elif letter == ord("P"):
                    how, where = options["personality"]
                    data += bytes([how]) + (b"" if how == OMIT else self.encoded(where, how, 0, address_size=size))
        if letters.startswith(b"z"):
            length = len(data) if options["data_length"] is None else options["data_length"]
            parts.append(("data_length", uleb(length)))
        return [*parts, ("data", data), ("program", entry.program)]

    def _fde(self, entry: Entry, place: int) -> list[tuple[str, bytes]]:
        options = entry.options
        cie = self.cies[options["cie"]].options
        encoding, size = cie["encoding"], cie["address_size"]
        start = options["raw"]
        if start is None:
            start = self.encoded(options["start"], encoding, self.address + place, address_size=size)
        length = options["raw_size"]
        if length is None:
            length = self.encoded(options["size"], encoding & 0x0F, 0, address_size=size)
        parts = [("start", start), ("size", length)]
        data = options["data"]
        if b"L" in cie["augmentation"]:
            data = self.encoded(options["lsda"], cie["lsda"] & 0x0F, 0, address_size=size) + data
        if cie["augmentation"].startswith(b"z"):
            stated = len(data) if options["data_length"] is None else options["data_length"]
            parts.append(("data_length", uleb(stated)))
        return [*parts, ("data", data), ("program", entry.program)]

    def bytes(self) -> bytes:
        return self.assemble()[0]
