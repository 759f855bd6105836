"""The header: what each field means and bounds, and what is refused."""

from __future__ import annotations

import pytest

from sframe.vectors import DRAP, texts
from sframebuilder import AARCH64, FDE_SIZES, SFrameBuilder, row
from walkback.base.arch import ByteOrder
from walkback.base.errors import SFrameError
from walkback.sframe.decoding import decode
from walkback.sframe.encoding import encode
from walkback.sframe.rules import to_table

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_header_fields(version: int, order: ByteOrder) -> None:
    builder = SFrameBuilder(
        version,
        order=order,
        abi=AARCH64,
        flags=1,
        fixed_fp=-128,
        fixed_ra=127,
        auxiliary=b"\1\2\3",
        num_fres=0x01020304,
    )
    builder.function(0x10, 0x80000001, [row(255, 0, [-128])])
    data, labels = builder.assemble()
    section = decode(data, address=0x1000)
    assert (section.version, section.byteorder, section.flags, section.abi_arch) == (version, order, 1, 2)
    assert (section.cfa_fixed_fp_offset, section.cfa_fixed_ra_offset) == (-128, 127)
    assert section.auxiliary == b"\1\2\3"
    assert (section.num_fdes, section.num_fres) == (1, 0x01020304)
    assert section.header_end == 31
    assert (section.fde_start, section.fre_start, section.end) == (labels["index"], labels["rows"], labels["end"])
    assert section.functions.size.tolist() == [0x80000001]
    assert section.row_start.tolist() == [255]
    assert section.shapes.words.tolist() == [-128]
    assert encode(section) == data
    # without PCREL a start counts from the section
    assert section.code_address.tolist() == [0x1010]


@pytest.mark.parametrize(("version", "size"), FDE_SIZES.items())
def test_size_of_an_index_entry(version: int, size: int) -> None:
    builder = SFrameBuilder(version)
    for start in (0, 64, 128):
        builder.function(start, 64)
    data, labels = builder.assemble()
    section = decode(data)
    assert section.fde_size == size
    assert [section.field_offset(i) for i in range(3)] == [labels[f"fde{i}.start"] for i in range(3)]
    assert [section.field_offset(i) for i in range(3)] == [28, 28 + size, 28 + 2 * size]


@pytest.mark.parametrize("order", ["little", "big"])
def test_the_magic_number_tells_the_byte_order(order: ByteOrder) -> None:
    data = SFrameBuilder(2, order=order).bytes()
    assert data[:2] == (b"\xe2\xde" if order == "little" else b"\xde\xe2")
    assert decode(data).byteorder == order


@pytest.mark.parametrize("flags", range(8))
@pytest.mark.parametrize("version", [1, 2, 3])
def test_flags_as_they_stand(version: int, flags: int) -> None:
    builder = SFrameBuilder(version, flags=flags)
    builder.function(0x100, 8, [row(0, 1, [8])])
    section = decode(builder.bytes())
    assert (section.flags, section.sorted, section.pcrel) == (flags, bool(flags & 1), bool(flags & 4))
    assert section.code_address.tolist() == [0x100]


def test_unknown_flags_and_reserved_bits_are_kept() -> None:
    builder = SFrameBuilder(3, flags=0xFC)
    builder.function(0, 8, [row(0, 1, [8])], info=0x40, info2=0xE0, rep_size=9)
    section = decode(builder.bytes())
    assert section.flags == 0xFC
    assert section.functions.info.tolist() == [0x40]
    assert (section.functions.info2.tolist(), section.functions.fde_type.tolist()) == ([0xE0], [0])
    assert section.block_size.tolist() == [0]
    assert encode(section) == builder.bytes()


@pytest.mark.parametrize(
    ("change", "rule", "offset"),
    [
        ({"magic": 0xDEE3}, "header-magic", 0),
        ({"magic": 0x0000}, "header-magic", 0),
        ({"version": 0}, "header-version", 2),
        ({"version": 4}, "header-version", 2),
        ({"auxhdr_len": 255}, "header-auxiliary", 7),
        ({"num_fdes": 10}, "index-bounds", 8),
        ({"num_fdes": 0xFFFFFFFF}, "index-bounds", 8),
        ({"fdeoff": 0xFFFFFFFF}, "index-bounds", 8),
        ({"fre_len": 0xFFFFFFFF}, "rows-bounds", 0x10),
        ({"freoff": 0xFFFFFFFF}, "rows-bounds", 0x10),
        ({"fre_len": 0x100}, "rows-bounds", 0x10),
    ],
)
@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_header_errors_name_rule_and_offset(
    version: int, order: ByteOrder, change: dict[str, int], rule: str, offset: int
) -> None:
    builder = SFrameBuilder(version, order=order)
    builder.header |= change
    builder.function(0, 8, [row(0, 1, [8])])
    for faults in (False, True):
        with pytest.raises(SFrameError) as error:
            decode(builder.bytes(), faults=faults)
        assert (error.value.rule, error.value.offset) == (rule, offset)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("length", range(28))
def test_too_short_for_a_header(length: int) -> None:
    with pytest.raises(SFrameError, match=f"{length} bytes are too few") as error:
        decode(DRAP[:length])
    assert (error.value.rule, error.value.offset) == ("header-size", 0)


def test_header_alone() -> None:
    data = SFrameBuilder(3).bytes()
    section = decode(data)
    assert (len(section.functions), len(section.row_start), len(section.shapes), section.gaps) == (0, 0, 0, ())
    assert encode(section) == data
    assert to_table(section).find(0) is None


def test_index_offset_is_of_no_matter_without_functions() -> None:
    data = SFrameBuilder(2, fdeoff=0xFFFFFFFF).bytes()
    section = decode(data)
    assert encode(section) == data


def test_index_may_stand_after_the_rows() -> None:
    builder = SFrameBuilder(3, rows_first=True)
    builder.function(0x100, 8, [row(0, 1, [8])])
    builder.function(0x200, 8, [row(0, 1, [16])])
    assert [rule.split(",")[0] for rule in texts(builder.bytes())] == ["CFA = rsp+8", "CFA = rsp+16"]
    assert decode(builder.bytes()).code_address.tolist() == [0x100, 0x200]
