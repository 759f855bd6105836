"""Columns that a caller brings: any whole numbers in any memory, and none that becomes another one silently."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from walkback.base.errors import InexpressibleError
from walkback.cbf.decoding import decode, decode_all
from walkback.cbf.encoding import encode, encode_columns
from walkback.cbf.ends import kept_ends
from walkback.cbf.layout import FrameCode

pytestmark = pytest.mark.kernel
DATA = encode([(FrameCode.PC, 1), (FrameCode.RA, 2), (FrameCode.RA, 2)])
# Lists are taken in the place of arrays.
BOUNDS: Any = [0, 1]
KIND: Any = [1]
VALUE: Any = [5]
WORD: Any = np.int64(32)


@pytest.mark.parametrize(
    "columns",
    [
        {"kind": np.array([257])},
        {"kind": np.array([-1])},
        {"value": np.array([-1])},
        {"times": np.array([-1])},
    ],
)
def test_a_number_that_does_not_fit_is_refused_and_never_another_one(columns: dict[str, Any]) -> None:
    with pytest.raises(InexpressibleError):
        encode_columns(BOUNDS, **({"kind": np.array([1]), "value": np.array([5])} | columns))


@pytest.mark.parametrize("name", ["kind", "value", "times"])
def test_columns_are_of_whole_numbers(name: str) -> None:
    with pytest.raises(ValueError, match="whole numbers"):
        encode_columns(BOUNDS, **({"kind": KIND, "value": VALUE} | {name: np.array([1.5])}))


def test_whatever_is_true_marks_a_truncated_one() -> None:
    data, _ = encode_columns(BOUNDS, KIND, VALUE, truncated=np.array([256]))
    assert decode(data).truncated


def test_a_word_may_be_a_number_of_numpy() -> None:
    assert decode(encode_columns(BOUNDS, KIND, VALUE, word=WORD)[0]).word == 32


def test_memory_may_be_read_only_or_scattered() -> None:
    offsets = np.array([0, len(DATA)])
    offsets.flags.writeable = False
    assert decode_all(DATA, offsets)[0] == decode(DATA)
    scattered = np.zeros(2 * len(DATA), np.uint8)
    scattered[::2] = np.frombuffer(DATA, np.uint8)
    assert decode(scattered[::2]) == decode(DATA)


def test_limits_of_any_size_are_taken() -> None:
    found = decode_all(DATA).expanded(2**64 - 1, total=2**70, cut=True)
    assert found.value.tolist() == [1, 2, 2]


@pytest.mark.parametrize("first", [[0, 9], [], [2, 1]])
def test_offsets_that_do_not_rise_within_the_frames_are_refused(first: Any) -> None:
    kind: Any = [1, 1, 1]
    value: Any = [2, 3, 4]
    with pytest.raises(ValueError, match="rise"):
        kept_ends(first, kind, value, 1, 0)


def test_backtraces_are_equal_if_all_that_they_say_is() -> None:
    one = decode(DATA)
    assert one == decode(DATA)
    assert hash(one) == hash(decode(DATA))
    assert one != decode(DATA[:-1] + b"\x01")
    assert one != decode(encode([(FrameCode.PC, 1), (FrameCode.RA, 2)]))
    assert one != 5
