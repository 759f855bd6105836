"""What `check` tells as a whole: everything in one run, worst first, bounded; what is left out; who would load it."""

from __future__ import annotations

import struct
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from sframebuilder import AARCH64, S390X, SFrameBuilder, row
from sframefiles import PC64, SFRAME, SIZE, TEXT, archive, linked, placing, relocatable, small, written
from walkback.base.arch import ByteOrder
from walkback.sections.check import check, check_source
from walkback.sframe.checking import LISTED, Report, Severity
from walkback.sframe.files import from_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from elfbuilder import ElfBuilder, Image


def of_bytes(data: bytes | SFrameBuilder, **options: Any) -> Report:
    return check_source(from_bytes(data if isinstance(data, bytes) else data.bytes(), address=SFRAME), **options)


def of_file(folder: Path, content: ElfBuilder | Image, **options: Any) -> Report:
    (report,) = check(written(folder, content), **options)
    return report


def codes(report: Report) -> list[str]:
    return [finding.code for finding in report.findings]


def damaged() -> SFrameBuilder:
    """A section with something of each severity wrong."""
    builder = small(2, num_fres=13)
    builder.functions[0].overrides["padding"] = 7
    builder.functions[1].rows[1].words = [16, 16]
    builder.functions[2].rows[2].start = 1
    return builder


# Many findings


def test_all_findings_come_in_one_run_worst_first_and_then_in_the_order_of_the_section(tmp_path: Path) -> None:
    report = of_file(tmp_path, linked(damaged().bytes(), segment=False))
    assert codes(report) == ["row-count", "row-order", "segment-missing", "saved-above-cfa", "function-padding"]
    severities = [finding.severity for finding in report.findings]
    assert severities == sorted(severities)
    assert (report.functions, report.rows) == (3, 12)


def test_findings_of_one_severity_stand_in_the_order_of_their_offsets() -> None:
    builder = small(functions=6)
    for number in (4, 1, 3):
        builder.functions[number].rows[1].words = [16, 0]
    found = [finding for finding in of_bytes(builder).findings if finding.code == "saved-above-cfa"]
    assert [finding.function for finding in found] == [1, 3, 4]


def test_a_header_that_cannot_be_read_is_the_one_finding() -> None:
    report = of_bytes(b"\xe2\xde\x09" + bytes(40))
    assert codes(report) == ["header-version"]
    assert (report.functions, report.rows) == (0, 0)


def many(count: int) -> SFrameBuilder:
    builder = SFrameBuilder(2, address=SFRAME)
    for number in range(count):
        builder.function(TEXT + SIZE * number, SIZE, [row(0, 1, [8])], padding=1)
    return builder


@pytest.mark.parametrize("listed", [1, 3, LISTED])
def test_of_each_rule_so_many_breaches_are_listed_and_the_others_counted(listed: int) -> None:
    report = of_bytes(many(50), limit=listed)
    assert codes(report) == ["function-padding"] * listed
    assert report.unlisted == {"function-padding": 50 - listed}
    assert [finding.function for finding in report.findings] == list(range(listed))


def test_when_all_are_listed_nothing_is_unlisted() -> None:
    assert of_bytes(many(LISTED)).unlisted == {}


def test_a_breach_in_each_of_many_rows_costs_little() -> None:
    rows = 300_000
    data = bytearray(small(2, functions=1, freoff=20, fre_len=3 * rows, num_fres=rows).bytes()[:48])
    struct.pack_into("<I", data, 0x1C + 12, rows)
    report = of_bytes(bytes(data) + b"\x01\x03\xf8" * rows)
    assert report.rows == rows
    assert report.unlisted == {"row-order": rows - 1 - LISTED, "cfa-below-sp": rows - LISTED}


# Leaving out


def test_ignored_rules_are_not_told() -> None:
    everything = codes(of_bytes(damaged()))
    assert "row-count" in everything
    assert codes(of_bytes(damaged(), ignore=["row-count"])) == [code for code in everything if code != "row-count"]


def test_a_rule_that_does_not_exist_cannot_be_ignored() -> None:
    with pytest.raises(ValueError, match="there is no rule row-counts"):
        of_bytes(small(), ignore=["row-counts"])


# Consumers


def refusals(report: Report) -> list[str]:
    return [finding.code for finding in report.findings if finding.severity is Severity.REFUSED]


@pytest.mark.parametrize("consumer", ["linux", "glibc", "gnu-ld"])
def test_a_consumer_takes_what_is_made_for_it(consumer: str, tmp_path: Path) -> None:
    content = {
        "linux": lambda: linked(small().bytes()),
        "glibc": lambda: linked(small(2).bytes()),
        "gnu-ld": lambda: relocatable(small(), placing(3)),
    }[consumer]()
    assert refusals(of_file(tmp_path, content, consumer=consumer)) == []


def test_without_a_consumer_nobody_refuses(tmp_path: Path) -> None:
    assert refusals(of_file(tmp_path, linked(small(1).bytes()))) == []


@pytest.mark.parametrize("consumer", ["linux", "linux-kernel", "glibc", "gnu-ld"])
def test_a_consumer_that_refuses_says_all_the_reasons(consumer: str, tmp_path: Path) -> None:
    content = linked(small(1, flags=0).bytes(), segment=False)
    told = refusals(of_file(tmp_path, content, consumer=consumer))
    assert all(code.startswith(f"{consumer}-") for code in told)
    assert len(told) >= 3


def test_linux_refuses_a_row_that_starts_where_its_function_ends(tmp_path: Path) -> None:
    builder = small()
    builder.functions[1].rows[3].start = SIZE
    report = of_file(tmp_path, linked(builder.bytes()), consumer="linux")
    assert sorted(codes(report)) == ["linux-rows", "row-at-end"]


def test_linux_takes_every_machine_that_it_runs_on(tmp_path: Path) -> None:
    machines: list[tuple[int, int, ByteOrder]] = [(AARCH64, 183, "little"), (S390X, 22, "big")]
    for abi, machine, order in machines:
        content = linked(small(abi=abi, order=order).bytes(), machine=machine, order=order)
        assert refusals(of_file(tmp_path, content, consumer="linux")) == []


def test_what_is_ignored_still_decides_whether_a_consumer_loads_the_section() -> None:
    builder = small()
    builder.functions[0].rows[1].info |= 0x60
    report = of_bytes(builder, consumer="linux", ignore=["row-word-size", "rows-gap"])
    assert [finding.message for finding in report.findings if finding.code == "linux-rows"] == ["see row-word-size"]


@pytest.mark.parametrize("consumer", ["linux", "linux-kernel", "glibc"])
def test_nobody_loads_an_empty_section(consumer: str, tmp_path: Path) -> None:
    assert refusals(of_file(tmp_path, linked(b"", segment=False), consumer=consumer)) != []


@pytest.mark.parametrize("consumer", ["linux", "linux-kernel", "glibc", "gnu-ld"])
def test_nobody_loads_what_has_no_header(consumer: str, tmp_path: Path) -> None:
    assert refusals(of_file(tmp_path, linked(b"\xe2\xde\x09" + bytes(40)), consumer=consumer)) != []


# Several sections


def test_findings_in_a_later_piece_are_placed_from_the_start_of_the_section(tmp_path: Path) -> None:
    first = small(functions=2).bytes()
    first += bytes(-len(first) % 8)
    second = small(address=SFRAME + len(first), num_fres=13).bytes()
    report = of_file(tmp_path, linked(first + second))
    (finding,) = (finding for finding in report.findings if finding.code == "row-count")
    assert finding.offset == len(first) + 0xC
    assert (report.functions, report.rows) == (5, 20)


def test_a_later_piece_that_cannot_be_read_is_placed_from_the_start_of_the_section(tmp_path: Path) -> None:
    first = small(functions=2).bytes()
    first += bytes(-len(first) % 8)
    report = of_file(tmp_path, linked(first + small(address=SFRAME + len(first), num_fdes=200).bytes()))
    (finding,) = (finding for finding in report.findings if finding.code == "index-bounds")
    assert finding.offset == len(first) + 8


def test_each_member_of_an_archive_has_its_report(tmp_path: Path) -> None:
    one = written(tmp_path, relocatable(small(), placing(3)), "one.o")
    two = written(tmp_path, relocatable(small(), placing(3, 2)), "two.o")
    path = archive(tmp_path, "all.a", one, two)
    reports = list(check(path))
    assert [report.source.file for report in reports] == [f"{path}(one.o)", f"{path}(two.o)"]
    assert [codes(report) for report in reports] == [[], ["relocation-missing"]]


# Damage that is easily missed


@pytest.mark.parametrize("version", [2, 3])
def test_functions_with_a_wrong_count_do_not_make_others_unreadable(version: int) -> None:
    builder = small(version, functions=30)
    for number in (0, 1, 2):
        builder.functions[number].overrides["num_fres"] = 60_000
    report = of_bytes(builder)
    assert "rows-shared" not in codes(report)
    assert report.rows >= 27 * 4


def test_a_row_behind_the_start_of_an_empty_function_is_noticed() -> None:
    builder = small()
    builder.functions[1].size = 0
    assert "row-range" in codes(of_bytes(builder))


def test_a_relocation_beyond_the_section_is_noticed(tmp_path: Path) -> None:
    report = of_file(tmp_path, relocatable(small(), [*placing(3), (0x10000, PC64, "f0", 0)]))
    assert codes(report) == ["relocation-stray"]


def test_two_relocations_of_one_field_are_noticed(tmp_path: Path) -> None:
    report = of_file(tmp_path, relocatable(small(), [*placing(3), (0x1C, PC64, "f2", 0)]))
    assert "relocation-stray" in codes(report)


def test_two_functions_at_one_place_of_an_object_are_noticed(tmp_path: Path) -> None:
    report = of_file(tmp_path, relocatable(small(), [*placing(3, 2), (0x3C, PC64, ".text", SIZE)]))
    assert "function-duplicate" in codes(report)


def test_gnu_ld_is_asked_when_all_relocations_have_been_seen(tmp_path: Path) -> None:
    # The rules are few enough here that nothing else is counted.
    builder = small()
    content = relocatable(builder, [*placing(3), (0x60, PC64, "f0", 0)])
    told = of_file(tmp_path, content, consumer="gnu-ld").findings
    sound = of_file(tmp_path, relocatable(small(), placing(3)), consumer="gnu-ld").findings
    assert {finding.code for finding in told} - {finding.code for finding in sound} == {
        "relocation-stray",
        "gnu-ld-relocations",
    }


def test_a_segment_at_another_place_of_the_file_is_noticed(tmp_path: Path) -> None:
    image = linked(small().bytes()).build()
    assert "segment-place" in codes(of_file(tmp_path, image.segment(2, "p_offset", 0x40)))


@pytest.mark.parametrize("block", [17, 255])
def test_a_block_that_does_not_repeat_evenly_is_noticed(block: int) -> None:
    builder = SFrameBuilder(3, address=SFRAME)
    builder.function(TEXT, 64, [row(0, 1, [8]), row(11, 1, [16])], mask=True, rep_size=block)
    assert "function-remainder" in codes(of_bytes(builder))


@pytest.mark.parametrize(("abi", "order"), [(AARCH64, "little"), (S390X, "big")])
def test_a_row_between_two_instructions_is_noticed(abi: int, order: ByteOrder) -> None:
    builder = SFrameBuilder(3, abi=abi, order=order, address=SFRAME)
    builder.function(TEXT, SIZE, [row(0, 1, [0]), row(5, 1, [16])])
    assert codes(of_bytes(builder)) != []


def test_two_registers_saved_at_one_place_are_noticed() -> None:
    builder = small()
    builder.functions[0].rows[1].words = [16, -8]
    assert codes(of_bytes(builder)) != []


def test_a_cfa_from_a_frame_pointer_that_is_still_the_callers_is_noticed() -> None:
    builder = small()
    builder.functions[0].rows[0].info &= ~1
    assert codes(of_bytes(builder)) != []


def test_a_return_address_below_the_stack_pointer_is_noticed() -> None:
    builder = small()
    builder.functions[0].rows[0].words = [0]
    assert codes(of_bytes(builder)) != []


@pytest.mark.parametrize("what", ["segment", "plt"])
def test_a_segment_or_section_at_the_end_of_the_address_space_is_no_trouble(what: str, tmp_path: Path) -> None:
    content = linked(small().bytes())
    if what == "plt":
        content.section(".plt.got", bytes(16), flags=6, addr=2**64 - 8)
    image = content.build()
    if what == "segment":
        image.segment(0, "p_vaddr", 2**64 - 0x1000).segment(0, "p_memsz", 0x2000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        of_file(tmp_path, image)


def test_bytes_between_the_rows_and_behind_them_are_two_findings() -> None:
    source = from_bytes(small(functions=1, fre_len=25).bytes() + bytes(15))
    found = {one.code: one.message for one in check_source(source).findings}
    assert found["rows-gap"] == "5 bytes of the FRE sub-section belong to no function"
    assert found["section-tail"] == "10 bytes follow the FRE sub-section"
