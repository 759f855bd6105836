"""What would lose functions without a word is refused, and nothing is written."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from corpus import gas_object
from sframefiles import PC64, SFRAME, SIZE, TEXT, placing, relocatable, small, written
from walkback import (
    ElfFile,
    GraftError,
    IncompleteError,
    InexpressibleError,
    MissingError,
    SFrameError,
    convert,
    link,
    sframe,
    split,
)
from walkback.sections.linking.relink import link_object
from walkback.sframe.builder import SectionBuilder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FIRST = 28
"""Where the first start field is."""


@pytest.mark.parametrize("work", [partial(convert, version=2), link_object, split], ids=["convert", "link", "split"])
@pytest.mark.parametrize("symbol", ["nothing", ""])
def test_a_function_whose_symbol_is_elsewhere_is_not_dead(
    work: Callable[..., object], symbol: str, tmp_path: Path
) -> None:
    """Without a symbol it is: linkers leave such relocations for code that they dropped."""
    path, output = (
        written(tmp_path, relocatable(small(), [(FIRST, PC64, symbol, 0), *placing(3)[1:]])),
        tmp_path / "new",
    )
    if symbol:
        with pytest.raises(SFrameError, match="its symbol is in no section of this file"):
            work(path, output)
        assert not output.exists()
    else:
        work(path, output)
        assert sum(len(piece.section.functions) for one in sframe.read(output) for piece in one.pieces()) == 2


def test_a_result_without_functions_is_none(tmp_path: Path) -> None:
    """The section stands over all the code that it is about, so that its starts mean no code."""
    path = written(tmp_path, small(address=TEXT).bytes())
    with pytest.raises(MissingError, match="none of the 3 functions describes existing code"):
        link([f"{path}@{TEXT:#x}"], tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("address", [TEXT - 8, TEXT + SIZE, TEXT + 3 * SIZE - 1])
def test_a_section_does_not_stand_over_code(address: int, tmp_path: Path) -> None:
    path = written(tmp_path, small().bytes())
    with pytest.raises(GraftError, match="the section would stand over the function at"):
        link([f"{path}@{SFRAME:#x}"], tmp_path / "new", address=address)
    assert not (tmp_path / "new").exists()
    assert link([f"{path}@{SFRAME:#x}"], tmp_path / "new", address=TEXT + 3 * SIZE).functions == 3


def test_a_section_ends_before_the_address_space_does(tmp_path: Path) -> None:
    builder = SectionBuilder("AMD64")
    builder.function(2**64 - 0x2000, 16, ["CFA = rsp+8"])
    path = written(tmp_path, builder.encode(address=2**64 - 0x1000))
    size = path.stat().st_size
    for address, fits in ((2**64 - size, True), (2**64 - size + 1, False)):
        work = partial(link, [f"{path}@{2**64 - 0x1000:#x}"], tmp_path / "new", address=address)
        if fits:
            assert work().functions == 1
        else:
            with pytest.raises(GraftError, match="run over the end of the address space"):
                work()


@pytest.mark.peers
def test_one_section_of_several_that_lost_its_relocations_is_seen(tmp_path: Path) -> None:
    """Its functions are not dead: a linker that drops code leaves the others their places."""
    body = ".cfi_startproc\nret\n.cfi_endproc\n"
    text = "".join(f'.section .text.f{n},"ax",@progbits\nf{n}:\n{body}' for n in range(3))
    path, output = tmp_path / "lost.o", tmp_path / "new"
    split(gas_object(text), path)
    data = bytearray(path.read_bytes())
    headers = int.from_bytes(data[0x28:0x30], "little")
    [_, second, _] = [n for n, name in enumerate(ElfFile(path).section_names()) if name == ".rela.sframe"]
    data[headers + 64 * second + 44 : headers + 64 * second + 48] = bytes(4)  # sh_info
    path.write_bytes(data)
    for work in (partial(convert, version=2), link_object, split):
        with pytest.raises(SFrameError, match="no relocation places the 1 function"):
            work(path, output)
        assert not output.exists()


def test_a_section_of_the_other_byte_order_is_refused(tmp_path: Path) -> None:
    data = small().bytes()
    path = written(tmp_path, relocatable(data[:4] + b"\1" + data[5:], placing(3)))
    with pytest.raises(InexpressibleError, match="the section is for AArch64 big-endian, and the file is not"):
        convert(path, tmp_path / "new", version=3)


@pytest.mark.parametrize("view", ["execution", "linking"])
def test_functions_out_of_reach_are_named_in_either_view(view: str, tmp_path: Path) -> None:
    builder = SectionBuilder("AMD64")
    for start in (0x1000, 0x180000000):
        builder.function(start, 16, ["CFA = rsp+8"])
    path = f"{written(tmp_path, builder.encode(address=0x40000000))}@0x40000000"
    with pytest.raises(IncompleteError, match="version 3 reaches any distance") as error:
        link([path], tmp_path / "new", version=2, view=view)
    assert [one.start for one in error.value.left_out] == [0x180000000]
    assert not (tmp_path / "new").exists()
    assert link([path], tmp_path / "new", version=2, view=view, leave_out=True).functions == 1


def test_without_an_address_there_is_always_room(tmp_path: Path) -> None:
    """The place of the lowest section can be too small for what all have."""
    pieces = []
    for number, address in enumerate((TEXT - 0xA0, 0x80000)):
        builder = SectionBuilder("AMD64")
        for function in range(4):
            builder.function(TEXT + SIZE * (4 * number + function), SIZE, ["CFA = rsp+8", (1, "CFA = rsp+16")])
        pieces.append(f"{written(tmp_path, builder.encode(address=address), f'piece{number}')}@{address:#x}")
    done = link(pieces, tmp_path / "new")
    assert (done.functions, done.address) == (8, TEXT + 8 * SIZE)


def test_without_an_address_and_without_room_one_must_be_chosen(tmp_path: Path) -> None:
    builder = SectionBuilder("AMD64")
    builder.function(2**64 - 16, 16, ["CFA = rsp+8"])
    before = 2**64 - 0x40
    path = written(tmp_path, builder.encode(version=1, address=before))
    with pytest.raises(GraftError, match="choose an address"):
        link([f"{path}@{before:#x}"], tmp_path / "new", version=3)
    assert link([f"{path}@{before:#x}"], tmp_path / "new", version=3, address=0x1000).functions == 1
