"""Every row of the document's tables, and every sentence that can be got wrong."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cbf.plaincbf import omit_instruction, shortest_size
from effort import SOAK, rounds
from walkback.base.errors import BacktraceError, InexpressibleError
from walkback.cbf.checking import check
from walkback.cbf.decoding import decode, decode_all, split
from walkback.cbf.encoding import encode, encode_all, encode_columns
from walkback.cbf.instructions import explain
from walkback.cbf.layout import FrameCode

pytestmark = pytest.mark.kernel
PC, RA, ASYNC, OMIT = FrameCode


def frames(text: str, *, lenient: bool = False) -> list[tuple[FrameCode, int]]:
    return list(decode(bytes.fromhex(text), lenient=lenient))


def refused(text: str) -> tuple[int | None, str | None]:
    with pytest.raises(BacktraceError) as error:
        decode(bytes.fromhex(text))
    return error.value.offset, error.value.rule


def notes(text: str) -> list[tuple[int, str]]:
    return [(one.offset, one.rule) for one in check(bytes.fromhex(text)) if one.note]


# The information byte


@pytest.mark.parametrize(("info", "word"), [("00", 16), ("01", 32), ("02", 64)])
def test_the_size_of_words(info: str, word: int) -> None:
    assert decode(bytes.fromhex(f"{info} 18 ff 00")).word == word
    assert frames(f"{info} 18 ff 00") == [(PC, 2**word - 1)]
    assert encode([], word=word).hex() == f"{info}00"


def test_the_reserved_size_and_other_versions_are_refused_and_have_no_frames() -> None:
    assert refused("03 18 01 00") == (0, "word-size")
    for version in (1, 2, 63):
        assert refused(f"{version << 2 | 2:02x} 18 01 00") == (0, "version")
        kept = decode(bytes([version << 2 | 2, 0x18, 1, 0]), lenient=True)
        assert (list(kept), kept.truncated) == ([], False)


def test_no_data_is_refused() -> None:
    assert refused("") == (0, "no-data")
    assert frames("", lenient=True) == []
    assert len(decode_all(b"")) == 0
    assert split(b"").tolist() == [0]


# Instructions


def test_end_and_trunc() -> None:
    assert not decode(b"\x02\x00").truncated
    assert decode(b"\x02\x01").truncated
    assert encode([], truncated=True) == b"\x02\x01"
    assert encode([], truncated=True, end=False) == b"\x02\x01"


def test_the_end_can_be_left_out_where_the_length_is_known() -> None:
    assert frames("02 18 11") == [(PC, 0x11)]
    assert not decode(bytes.fromhex("02 18 11")).truncated
    assert decode(bytes.fromhex("02 18 11"), lenient=True).truncated
    assert notes("02 18 11") == [(3, "no-end")]
    assert notes("02") == [(1, "no-end")]
    assert encode([(PC, 0x11)], end=False).hex() == "021811"


@pytest.mark.parametrize("code", range(2, 16))
def test_reserved_instructions_below_pc(code: int) -> None:
    assert refused(f"02 18 11 {code:02x} 00") == (3, "reserved")
    kept = decode(bytes([2, 0x18, 0x11, code, 0]), lenient=True)
    assert (list(kept), kept.truncated) == ([(PC, 0x11)], True)


@pytest.mark.parametrize("code", range(0x90, 0x100))
def test_reserved_instructions_above_rep(code: int) -> None:
    assert refused(f"02 18 11 {code:02x} 00") == (3, "reserved")


@pytest.mark.parametrize(("kind", "code"), [(PC, 0x10), (RA, 0x20), (ASYNC, 0x30)])
@pytest.mark.parametrize("count", range(1, 9))
def test_addresses_of_every_length_absolute_and_relative(kind: FrameCode, code: int, count: int) -> None:
    value = bytes(range(0x11, 0x11 + count))
    number = int.from_bytes(value, "big")
    absolute = bytes([2, code | 8 | (count - 1)]) + value
    assert list(decode(absolute + b"\0")) == [(kind, number)]
    relative = bytes([code | (count - 1)]) + value
    assert list(decode(absolute + relative + b"\0")) == [(kind, number), (kind, 2 * number % 2**64)]
    assert refused((absolute + relative[:-1]).hex()) == (len(absolute), "cut")


@pytest.mark.parametrize(("info", "word"), [(0, 16), (1, 32), (2, 64)])
@pytest.mark.parametrize("count", range(1, 9))
def test_address_values_are_sign_extended_and_sums_wrap_around(info: int, word: int, count: int) -> None:
    if 8 * count > word:
        return
    low = (-5) % (1 << 8 * count)
    data = bytes([info, 0x18, 3, 0x20 | (count - 1)]) + low.to_bytes(count, "big") + b"\x20\x05\x00"
    assert list(decode(data)) == [(PC, 3), (RA, 2**word - 2), (RA, 3)]


def test_only_the_first_address_has_to_be_absolute_and_a_relative_one_is_a_note() -> None:
    assert frames("02 10 11 20 02 00") == [(PC, 0x11), (RA, 0x13)]
    assert notes("02 10 11 20 02 00") == [(1, "first-relative")]
    assert notes("02 4f 10 11 00") == [(2, "first-relative")]
    assert notes("02 18 11 20 02 00") == []
    # Also behind an omission, and of each backtrace anew.
    assert encode([(OMIT, 1), (PC, 0x11)]).hex() == "0240181100"
    two, _ = encode_columns(np.array([0, 1, 2]), np.array([1, 1]), np.array([0x11, 0x12]))
    assert two.tobytes().hex() == "02181100" + "02181200"


@pytest.mark.parametrize("count", range(1, 33))
def test_omissions_inline_and_external(count: int) -> None:
    assert frames(f"02 {0x3F + count:02x} 00") == [(OMIT, count)]
    assert encode([(OMIT, count)]) == b"\x02" + omit_instruction(count) + b"\0"
    number = (1 << 8 * count) - 1 if count <= 8 else 0
    data = bytes([2, 0x5F + count]) + number.to_bytes(count, "big") + b"\0"
    if count <= 8:
        assert list(decode(data)) == [(OMIT, number)]
        assert encode([(OMIT, number)]) == data
    else:
        assert refused(data.hex()) == (1, "wide-operand")


def test_omissions_and_repeats_wider_than_the_word_are_refused() -> None:
    for info, width in ((0, 2), (1, 4), (2, 8)):
        for size in range(width + 1, 33):
            assert refused(f"{info:02x} {0x5F + size:02x} {'01' * size} 00") == (1, "wide-operand")
        for size in range(width + 1, 9):
            assert refused(f"{info:02x} 18 01 {0x87 + size:02x} {'01' * size} 00") == (3, "wide-operand")
            assert refused(f"{info:02x} {0x17 + size:02x} {'01' * size} 00") == (1, "wide-operand")
            kept = frames(f"{info:02x} {0x17 + size:02x} {'01' * size} 00", lenient=True)
            assert kept == [(PC, int("01" * width, 16))]
    assert frames("02 68 01 0000000000000002 00", lenient=True) == [(OMIT, 2)]


@pytest.mark.parametrize("count", range(1, 9))
def test_repeats_inline_and_external(count: int) -> None:
    assert frames(f"02 18 11 {0x7F + count:02x} 00") == [(PC, 0x11)] * (1 + count)
    data = bytes.fromhex("021811") + bytes([0x87 + count]) + (7).to_bytes(count, "big") + b"\0"
    assert list(decode(data)) == [(PC, 0x11)] * 8


def test_a_repeat_is_of_the_frame_and_not_of_its_instruction() -> None:
    assert frames("02 18 11 20 02 80 20 01 00") == [(PC, 0x11), (RA, 0x13), (RA, 0x13), (RA, 0x14)]
    assert frames("02 44 81 00") == [(OMIT, 5)] * 3


def test_a_repeat_of_nothing_is_refused() -> None:
    assert refused("02 80 00") == (1, "nothing-to-repeat")
    kept = decode(b"\x02\x80\x00", lenient=True)
    assert (list(kept), kept.truncated) == ([], True)


def test_an_external_repeat_of_0_repeats_nothing() -> None:
    assert frames("02 18 11 88 00 20 01 00") == [(PC, 0x11), (RA, 0x12)]
    assert notes("02 18 11 88 00 20 01 00") == [(3, "count-0")]
    assert notes("02 18 11 60 00 00") == [(3, "count-0")]


def test_more_repeats_than_swift_takes_are_a_note() -> None:
    assert notes("02 18 11 8a 10 00 01 00") == []
    assert notes("02 18 11 8a 10 00 02 00") == [(3, "many-repeats")]
    assert decode(bytes.fromhex("02 18 11 8a 10 00 02 00")).frame_count == 1048579


def test_what_is_behind_the_end_is_another_backtrace_or_wrong() -> None:
    data = bytes.fromhex("02 18 11 00  00 18 22 01")
    assert refused(data.hex()) == (4, "trailing")
    both = decode_all(data)
    assert [list(one) for one in both] == [[(PC, 0x11)], [(PC, 0x22)]]
    assert (both.truncated.tolist(), both.word.tolist()) == ([False, True], [64, 16])
    assert split(data).tolist() == [0, 4, 8]


def test_a_stream_that_breaks_keeps_what_came_before_if_lenient() -> None:
    data = bytes.fromhex("02 18 11 00  02 18 22 90  02 18 33 00")
    with pytest.raises(BacktraceError, match=r"offset 0x7: this instruction is reserved \[reserved\]"):
        decode_all(data)
    with pytest.raises(BacktraceError, match="offset 0x7"):
        split(data)
    kept = decode_all(data, lenient=True)
    assert [list(one) for one in kept] == [[(PC, 0x11)], [(PC, 0x22)]]
    assert kept.truncated.tolist() == [False, True]
    assert [(one.offset, one.rule) for one in kept.findings()] == [(7, "reserved")]


# Writing


def test_the_shortest_of_all_short_lists_over_a_small_alphabet(interpreted: bool) -> None:
    near, far, kernel = 0x4011, 0x7F0000004011, 0xFFFFFFFF81000000
    alphabets = {
        16: [("pc", near), ("ra", near), ("ra", near + 0x7F), ("ra", near + 0x80), ("async", 0xFFFF), ("omit", 32)],
        32: [("pc", near), ("ra", near + 0x80), ("ra", 0x80004011), ("omit", 33), ("omit", 1), ("ra", 2**32 - 1)],
        64: [("pc", near), ("ra", near + 0x8000), ("ra", far), ("ra", kernel), ("omit", 256), ("ra", near)],
    }
    kinds = {kind.name.lower(): kind for kind in FrameCode}
    for word, alphabet in alphabets.items():
        for size in range(3 if interpreted else rounds(6, quick=4) if not SOAK else 7):
            for wanted in itertools.product(alphabet, repeat=size):
                data = encode([(kinds[kind], value) for kind, value in wanted], word=word, end=False)
                assert len(data) == 1 + shortest_size(list(wanted), word), wanted


@pytest.mark.whole
@pytest.mark.parametrize("word", [16, 32, 64])
def test_the_shortest_of_long_repeats(word: int) -> None:
    for times in (*range(1, 20), *range(254, 268)):
        frame = [("ra", 0x1234)] * times
        data = encode([(RA, 0x1234)] * times, word=word, end=False)
        assert len(data) == 1 + shortest_size(frame, word), times
        assert decode(data).frame_count == times


@pytest.mark.parametrize(("repeats", "size"), [(8, 1), (9, 2), (255, 2), (256, 3), (65535, 3), (65536, 4), (65543, 4)])
def test_repeats_take_the_fewest_bytes(repeats: int, size: int) -> None:
    one = decode(encode([(PC, 0x11)]))
    many = type(one)(one.kind, one.value, one.times + np.uint64(repeats))
    assert len(encode(many, word=64)) == 4 + size
    assert decode(encode(many, word=16)).frame_count == 1 + repeats


def test_runs_that_are_equal_are_written_as_one() -> None:
    kind, value = np.array([1, 1, 1], np.uint8), np.array([5, 5, 5], np.uint64)
    times = np.array([2**64 - 1, 2**64 - 1, 3], np.uint64)
    data, _ = encode_columns(np.array([0, 3]), kind, value, times)
    back = decode(data)
    assert back.frame_count == 2 * (2**64 - 1) + 3
    assert len(data) == 4 + 9 + 9 + 1


def test_what_a_word_cannot_say_is_refused() -> None:
    with pytest.raises(InexpressibleError, match="the address 0x10000 has more than 16 bits"):
        encode([(PC, 0x10000)], word=16)
    with pytest.raises(InexpressibleError, match="65536 omitted frames are more than 16 bits can say"):
        encode([(OMIT, 0x10000)], word=16)
    for value in (-1, 2**64):
        with pytest.raises(InexpressibleError, match="does not fit into 64 bits"):
            encode([(PC, value)])
    with pytest.raises(InexpressibleError, match="one of the kinds PC, RA, ASYNC, OMIT"):
        encode([(5, 1)])
    with pytest.raises(InexpressibleError, match="there are no frames of kind 0"):
        encode_columns(np.array([0, 1]), np.array([0]), np.array([0]))
    one = decode(bytes.fromhex("02187f8fffffffffffffffff00"))
    with pytest.raises(InexpressibleError, match="takes more than 1024 instructions"):
        encode(one, word=16)


def test_wrong_columns_are_refused() -> None:
    kind, value = np.array([1, 1]), np.array([5, 6])
    for first in ([], [0, 3], [-1, 2], [1, 0]):
        with pytest.raises(ValueError, match="first has to rise"):
            encode_columns(np.array(first, np.int64), kind, value)
    for options in ({"word": 17}, {"word": np.array([64, 64])}, {"style": "other"}, {"truncated": np.array([])}):
        with pytest.raises(ValueError, match=r"word has|there is no style|truncated has"):
            encode_columns(np.array([0, 2]), kind, value, **options)
    with pytest.raises(ValueError, match="differ in length"):
        encode_columns(np.array([0, 2]), kind, value[:1])
    for offsets in ([], [0, 3], [-1, 1], [1, 0]):
        with pytest.raises(ValueError, match="offsets of backtraces must rise"):
            decode_all(b"\2\0", np.array(offsets, np.int64))


# Swift


def test_swift_starts_from_0_and_so_relative() -> None:
    assert encode([(PC, 0x11)], style="swift").hex() == "02101100"


def test_swift_writes_omissions_of_32_behind_the_instruction_and_none_of_0() -> None:
    assert encode([(OMIT, 31)], style="swift").hex() == "025e00"
    assert encode([(OMIT, 32)], style="swift").hex() == "02602000"
    assert encode([(OMIT, 32)]).hex() == "025f00"
    assert encode([(OMIT, 70000)], word=16, style="swift").hex() == "006201117000"
    for number in (0, 2**63):
        with pytest.raises(InexpressibleError, match="Swift cannot write"):
            encode([(OMIT, number)], style="swift")
    assert encode([(OMIT, 0)]).hex() == "02600000"


def test_swift_repeats_at_most_a_million_times_at_once() -> None:
    one = decode(bytes.fromhex("02187f 8b00200003 00"))
    assert one.frame_count == 1 + 0x200003
    assert encode(one, style="swift").hex() == "02107f" + "8a100000" * 2 + "82" + "00"


def test_swifts_own_test_of_all_instructions() -> None:
    """The frames of its test; the bytes are worked out by hand from what its writer does."""
    wanted = [
        (PC, 0x1000),
        (RA, 0x1010),
        (RA, 0xF10),
        (ASYNC, 0x7FFF00002000),
        (OMIT, 5),
        (OMIT, 1000),
        *[(RA, 0x2020)] * 2,
        *[(PC, 0x3030)] * 10,
    ]
    data = encode(wanted, truncated=True, style="swift")
    # 0x7fff00002000 - 0xf10 takes as many bytes as the address itself, so it is relative.
    assert data.hex(" ") == (
        "02 11 10 00 20 10 21 ff 00 35 7f ff 00 00 10 f0 44 61 03 e8 29 20 20 80 11 10 10 88 09 01"
    )
    assert list(decode(data)) == wanted
    assert len(encode(wanted, truncated=True)) == len(data)


def test_the_limit_of_swifts_reader_is_that_of_its_test() -> None:
    for text, noted in (("02187f8a10000100", []), ("02187f8a100002", [(3, "many-repeats"), (7, "no-end")])):
        assert notes(text) == noted


# What is shown


def test_instructions_with_their_meaning() -> None:
    listed = list(explain(bytes.fromhex("02 18 11 21 01 00 20 f0 44 61 03 e8 30 01 81 88 09 01")))
    assert [(one.offset, one.mnemonic, one.meaning, one.address, one.count) for one in listed] == [
        (0, "info", "version 0, 64-bit words", None, None),
        (1, "pc", "absolute", 0x11, None),
        (3, "ra", "+0x100", 0x111, None),
        (6, "ra", "-0x10", 0x101, None),
        (8, "omit", "5 frames omitted", None, 5),
        (9, "omit", "1000 frames omitted", None, 1000),
        (12, "async", "+0x1", 0x102, None),
        (14, "rep", "the previous frame 2 more times", None, 2),
        (15, "rep", "the previous frame 9 more times", None, 9),
        (17, "trunc", "the backtrace is truncated here", None, None),
    ]


def test_columns_read_and_written_are_the_same() -> None:
    data = bytes.fromhex("02 18 11 20 02 81 00  01 18 11 44 01")
    again, offsets = encode_all(decode_all(data))
    assert again.tobytes() == data
    assert offsets.tolist() == [0, 7, 12]
    one = decode_all(data)
    assert one.frame_counts().tolist() == [4, 2]
    assert one.expanded().first.tolist() == [0, 4, 6]
    assert list(one[-1]) == list(one[1])
    with pytest.raises(IndexError):
        one[2]


def test_columns_grow_where_backtraces_or_frames_take_few_bytes() -> None:
    many = decode_all(b"\x02\x00" * 5000)
    assert (len(many), many.first.tolist()) == (5000, [0] * 5001)
    data = (b"\x00" + b"\x40\x80" * 3000 + b"\x01") * 4
    many = decode_all(data)
    assert many.first.tolist() == [0, 3000, 6000, 9000, 12000]
    assert many.times.tolist() == [2] * 12000
    assert many.truncated.all()
    assert split(data).tolist() == [0, 6002, 12004, 18006, 24008]
    offsets = np.array([0, 6002, 12004])
    assert decode_all(data, offsets).first.tolist() == [0, 3000, 6000]


def test_columns_may_begin_and_end_inside_of_larger_ones() -> None:
    kind, value = np.full(5, FrameCode.PC), np.arange(5) + 0x11
    data, offsets = encode_columns(np.array([1, 2, 4]), kind, value)
    assert data.tobytes().hex(" ", 1) == "02 18 12 00 02 18 13 10 01 00"
    assert offsets.tolist() == [0, 4, 10]
