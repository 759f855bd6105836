"""The package against the second reader and writer, over random and damaged backtraces of all three words."""

from __future__ import annotations

import random
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from cbf.plaincbf import BrokenError, read, shortest_size, write_as_swift, write_somehow
from effort import QUICK, SHARE, rounds
from walkback.base.errors import BacktraceError, InexpressibleError
from walkback.cbf.backtraces import Backtraces
from walkback.cbf.checking import check
from walkback.cbf.decoding import decode, decode_all, split
from walkback.cbf.encoding import encode, encode_all
from walkback.cbf.instructions import explain
from walkback.cbf.layout import FrameCode

pytestmark = pytest.mark.kernel
NAMES = {kind: kind.name.lower() for kind in FrameCode}
KINDS = {name: kind for kind, name in NAMES.items()}
BATCH = 1_000 if QUICK else 5_000 // SHARE


def batches(interpreted: bool) -> int:
    """Batches of each kind and word: in a soak millions of sequences, in the whole run a hundred thousand."""
    return rounds(1 if interpreted else 4, quick=1, share=1000)


def address(rng: random.Random, word: int, near: int) -> int:
    way = rng.random()
    if way < 0.5:
        found = near + rng.randint(-(1 << rng.choice((3, 7, 8, 15, 16, 20))), 1 << rng.choice((3, 7, 8, 15, 16, 20)))
    elif way < 0.9:
        found = rng.getrandbits(rng.randint(1, word))
    else:
        found = (1 << rng.randint(0, word)) + rng.randint(-2, 1)
    return found % (1 << word)


def frames(rng: random.Random, word: int) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    near = address(rng, word, 0)
    for _ in range(rng.randint(0, 9)):
        if found and rng.random() < 0.2:
            found += [found[-1]] * rng.choice((1, 1, 2, 7, 8, 9, 16, 17))
        elif rng.random() < 0.15:
            found.append(("omit", rng.choice((1, 2, 31, 32, 33, 255, 256, 65535, rng.getrandbits(word)))))
        else:
            near = address(rng, word, near)
            found.append((rng.choice(("pc", "ra", "ra", "async")), near))
    return found


def damaged(rng: random.Random, data: bytes) -> bytes:
    way = rng.random()
    if way < 0.2:
        return data[: rng.randint(0, len(data))]
    if way < 0.4:
        return bytes([rng.choice((0, 1, 2, 2, 3, 6))]) + rng.randbytes(rng.randint(0, 24))
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(changed)) if changed else 0
        if rng.random() < 0.3:
            changed[place:place] = rng.randbytes(rng.randint(1, 4))
        elif rng.random() < 0.3:
            del changed[place : place + rng.randint(1, 4)]
        elif changed:
            changed[place] = rng.choice((rng.getrandbits(8), changed[place] ^ 1 << rng.randint(0, 7)))
        if not changed:
            break
    return bytes(changed)


def joined(pieces: list[bytes]) -> tuple[bytes, np.ndarray]:
    return b"".join(pieces), np.cumsum([0, *map(len, pieces)])


def runs_of(backtraces: Backtraces, number: int) -> list[tuple[str, int, int]]:
    one = backtraces[number]
    return [
        (NAMES[FrameCode(kind)], value, times)
        for kind, value, times in zip(one.kind.tolist(), one.value.tolist(), one.times.tolist(), strict=True)
    ]


def together(runs: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Equal neighbours as one: more repeats than 64 bits can count are two runs in columns."""
    found: list[tuple[str, int, int]] = []
    for kind, value, times in runs:
        if found and found[-1][:2] == (kind, value):
            found[-1] = (kind, value, found[-1][2] + times)
        else:
            found.append((kind, value, times))
    return found


@pytest.mark.parametrize("word", [16, 32, 64])
def test_any_encoding_reads_the_same_as_by_the_second_reader(word: int, interpreted: bool) -> None:
    for batch in range(batches(interpreted)):
        rng = random.Random(f"{word}/{batch}")
        pieces = []
        for _ in range(200 if interpreted else BATCH):
            truncated = rng.random() < 0.2
            pieces.append(write_somehow(frames(rng, word), word, rng, truncated=truncated))
        data, offsets = joined(pieces)
        found = decode_all(data)
        assert split(data).tolist() == offsets.tolist()
        for number, piece in enumerate(pieces):
            plain = read(piece)
            assert runs_of(found, number) == plain.frames, piece.hex()
            assert (found.truncated[number], found.word[number]) == (plain.truncated, word)


@pytest.mark.parametrize("word", [16, 32, 64])
def test_what_is_written_is_the_shortest_and_reads_the_same_by_the_second_reader(word: int, interpreted: bool) -> None:
    for batch in range(batches(interpreted)):
        rng = random.Random(f"write/{word}/{batch}")
        many = [frames(rng, word) for _ in range(200 if interpreted else BATCH)]
        flat = [frame for one in many for frame in one]
        first = np.cumsum([0, *map(len, many)])
        truncated = np.array([rng.random() < 0.2 for _ in many])
        columns = Backtraces(
            first,
            np.array([KINDS[kind] for kind, _ in flat], np.uint8),
            np.array([value for _, value in flat], np.uint64),
            np.ones(len(flat), np.uint64),
            truncated,
            np.full(len(many), word, np.uint8),
        )
        data, offsets = encode_all(columns)
        swift, swift_offsets = encode_all(for_swift(columns), style="swift")
        for number, wanted in enumerate(many):
            piece = data[offsets[number] : offsets[number + 1]].tobytes()
            plain = read(piece)
            assert plain.each() == wanted
            assert (plain.ended, plain.truncated, plain.first_is_relative) == (True, truncated[number], False)
            if number < 100:
                assert len(piece) == 2 + shortest_size(wanted, word), wanted
            sayable = [(kind, said_by_swift(value) if kind == "omit" else value) for kind, value in wanted]
            piece = swift[swift_offsets[number] : swift_offsets[number + 1]].tobytes()
            assert piece == write_as_swift(sayable, word, truncated=bool(truncated[number]))


def said_by_swift(omitted: int) -> int:
    """Numbers of omitted frames that it cannot write are replaced."""
    return omitted if 0 < omitted < 2**63 else 1


def for_swift(columns: Backtraces) -> Backtraces:
    pairs = zip(columns.kind.tolist(), columns.value.tolist(), strict=True)
    value = [said_by_swift(value) if kind == FrameCode.OMIT else value for kind, value in pairs]
    return replace(columns, value=np.array(value, np.uint64))


def plain_fault(piece: bytes) -> int | None:
    """Where the second reader stops; what is behind the end counts as well."""
    try:
        found = read(piece)
    except BrokenError as error:
        return error.place
    return found.size if found.size < len(piece) else None


@pytest.mark.parametrize("word", [16, 32, 64])
def test_damaged_ones_are_refused_at_the_byte_at_which_the_second_reader_stops(word: int, interpreted: bool) -> None:
    for batch in range(batches(interpreted)):
        rng = random.Random(f"damage/{word}/{batch}")
        count = 200 if interpreted else BATCH
        pieces = [damaged(rng, write_somehow(frames(rng, word), word, rng)) for _ in range(count)]
        data, offsets = joined(pieces)
        found = decode_all(data, offsets, lenient=True)
        assert found.at is not None
        assert found.fault is not None
        for number, piece in enumerate(pieces):
            wrong = plain_fault(piece)
            place = int(found.at[number]) - int(offsets[number]) if found.fault[number] else None
            assert place == wrong, piece.hex()
            if wrong is None:
                assert together(runs_of(found, number)) == together(read(piece).frames)
            if number % 50 == 0:
                look_at_everything(piece, wrong)


def look_at_everything(piece: bytes, wrong: int | None) -> None:
    """Neither way to look at it crashes; and they agree."""
    if wrong is None:
        assert decode(piece).frame_count == sum(times for _, _, times in read(piece).frames)
    else:
        with pytest.raises(BacktraceError) as error:
            decode(piece)
        assert error.value.offset == wrong
    kept = decode(piece, lenient=True)
    assert len(kept.kind) <= len(piece)
    listed = list(explain(piece))
    assert b"".join(one.data for one in listed) == piece
    findings = [one for one in check(piece) if not one.note]
    stream_fault = None
    try:
        decode_all(piece)
    except BacktraceError as error:
        stream_fault = error.offset
    if piece:
        assert [one.offset for one in findings[:1]] == ([] if stream_fault is None else [stream_fault])


@pytest.mark.parametrize("word", [16, 32, 64])
def test_a_bomb_takes_no_room(word: int) -> None:
    size = word // 8
    bomb = bytes([{16: 0, 32: 1, 64: 2}[word], 0x18, 0x7F]) + (bytes([0x88 | (size - 1)]) + b"\xff" * size) * 3 + b"\0"
    tracemalloc.start()
    one = decode(bomb)
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()
    assert one.frame_count == 1 + 3 * (2**word - 1)
    assert len(one.kind) <= 4
    frames_of_it = iter(one)
    assert [next(frames_of_it) for _ in range(1000)] == [(FrameCode.PC, 0x7F)] * 1000
    if word == 64:
        assert one.together().frame_counts().tolist() == [2**64 - 1]
    with pytest.raises(InexpressibleError, match="frames, and 65536 are the most wanted"):
        one.together().expanded()
    cut = one.together().expanded(limit=10, cut=True)[0]
    assert (list(cut), cut.truncated) == ([(FrameCode.PC, 0x7F)] * 10, True)
    again = encode(one)
    assert len(again) <= len(bomb)
    assert decode(again).frame_count == one.frame_count


def test_a_stream_of_bombs_takes_no_room_and_expands_to_no_more_than_is_wanted() -> None:
    bomb = bytes.fromhex("02187f8fffffffffffffffff00")
    many = decode_all(bomb * 10_000)
    assert set(many.frame_counts().tolist()) == {2**64 - 1}
    with pytest.raises(InexpressibleError, match="frames together, and 134217728 are the most wanted"):
        many.expanded(cut=True)
    assert len(many.expanded(20, cut=True).kind) == 200_000
