"""Equal strings get equal numbers, in order of first appearance, however many there are."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from sframebuilder import Row, SFrameBuilder, row
from walkback.base.arch import ByteOrder
from walkback.base.arrays import Numbers
from walkback.base.intern import intern_records
from walkback.sframe.decoding import decode
from walkback.sframe.section import Shapes

pytestmark = pytest.mark.kernel


def model(strings: Sequence[bytes | str]) -> tuple[list[int], list[int]]:
    """(first index of each distinct string, number of each string), by a dict."""
    numbers: dict[bytes | str, int] = {}
    first = []
    for index, string in enumerate(strings):
        if string not in numbers:
            numbers[string] = len(numbers)
            first.append(index)
    return first, [numbers[string] for string in strings]


def check(records: Numbers) -> None:
    first, numbers = intern_records(records)
    raw = records.tobytes()
    width = records.dtype.itemsize
    expected = model([raw[i : i + width] for i in range(0, len(raw), width)])
    assert (first.tolist(), numbers.tolist()) == expected


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 20), st.lists(st.integers(0, 5), max_size=40), st.randoms(use_true_random=False))
def test_records_of_every_width(width: int, picks: list[int], random: random.Random) -> None:
    palette = [random.randbytes(width) for _ in range(6)]
    check(np.frombuffer(b"".join(palette[pick] for pick in picks), f"V{width}"))


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 45])
def test_strings_that_differ_in_one_byte(width: int) -> None:
    strings = [b"\0" * width]
    strings += [b"\0" * n + bytes([value]) + b"\0" * (width - n - 1) for n in range(width) for value in (1, 128, 255)]
    check(np.frombuffer(b"".join(strings * 2), f"V{width}"))


@pytest.mark.parametrize("dtype", ["u4", "u8", "V12"])
@pytest.mark.parametrize("distinct", [255, 256, 257, 2049])
def test_growth(dtype: str, distinct: int) -> None:
    width = np.dtype(dtype).itemsize
    column = np.arange(distinct, dtype=np.uint64) * 0x9E3779B1
    raw = np.zeros((distinct, width), np.uint8)
    raw[:, : min(width, 8)] = column.view(np.uint8).reshape(-1, 8)[:, : min(width, 8)]
    once = raw.reshape(-1).view(dtype)
    check(np.concatenate((once, once[::-1])))


def test_no_records() -> None:
    check(np.zeros(0, "u8"))


def shapes_of(rows_by_type: list[tuple[int, list[Row]]], *, order: ByteOrder = "little") -> tuple[list[int], Shapes]:
    """Numbers of the shapes of rows in functions of some types: strings with tags, interned while rows are read."""
    builder = SFrameBuilder(3, order=order)
    for fde_type, rows in rows_by_type:
        builder.function(0, 8, rows, info2=fde_type)
    section = decode(builder.bytes())
    return section.row_shape.tolist(), section.shapes


def test_tags_keep_equal_strings_apart() -> None:
    short, long = row(0, 1, [8, -16]), row(0, 1, [1, 2, 3, 4, 5, 6, 7, 8])
    types = [0, 1, 2, 15, 16, 31]
    numbers, shapes = shapes_of([(one, [short, long]) for one in types * 2])
    assert numbers == list(range(12)) * 2
    assert shapes.fde_type.tolist() == [one for one in types for _ in range(2)]


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 31),
            st.lists(
                st.tuples(st.sampled_from([1, 2, 4]), st.lists(st.sampled_from([0, 1, -1, 8]), max_size=15)), max_size=8
            ),
        ),
        max_size=6,
    )
)
def test_shapes_of_all_lengths_and_tags(functions: list[tuple[int, list[tuple[int, list[int]]]]]) -> None:
    rows_by_type = [(tag, [row(0, 0, words, size=size) for size, words in rows]) for tag, rows in functions]
    numbers, _ = shapes_of(rows_by_type)
    strings = [repr((tag, one.info, one.words)) for tag, rows in rows_by_type for one in rows]
    assert numbers == model(strings)[1]


def test_many_shapes_while_rows_are_read() -> None:
    count = 700
    rows = [row(0, 1, [n], size=2) for n in range(count)] + [row(0, 1, [n, 0, 0, 0], size=4) for n in range(count)]
    numbers, shapes = shapes_of([(0, rows), (1, rows), (0, rows)])
    assert numbers == [*range(4 * count), *range(2 * count)]
    assert shapes.words[shapes.first_word[:-1]].tolist() == [*range(count), *range(count)] * 2


def test_a_string_at_the_very_end_of_the_buffer() -> None:
    # near the end eight bytes cannot be loaded at once
    rows = [row(n, 1, [8]) for n in range(12)]
    numbers, shapes = shapes_of([(0, rows)])
    assert numbers == [0] * 12
    assert len(shapes) == 1


def test_the_kernels_can_be_imported_without_a_compiler() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); from conftest import KERNELS, SourceFinder\n"
        "sys.meta_path.insert(0, SourceFinder())\n"
        "from importlib import import_module\n"
        "assert all(import_module(name).__file__.endswith('.py') for name in KERNELS)"
    )
    folder = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", program, folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
