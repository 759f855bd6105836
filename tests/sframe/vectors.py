"""Small sections made by hand, and the rules that they say.

The tests of them are one for each sentence of the specifications that can be got wrong.
"""

from __future__ import annotations

from typing import Any

from sframebuilder import AARCH64_BIG, S390X, Row, SFrameBuilder, row
from walkback.base.arch import ByteOrder
from walkback.sframe.decoding import decode
from walkback.sframe.encoding import encode
from walkback.sframe.rules import to_table

BIG_ABIS = {AARCH64_BIG, S390X}


def one_function(
    version: int,
    abi: int,
    rows: list[Row],
    *,
    size: int = 64,
    fixed_ra: int | None = None,
    fixed_fp: int = 0,
    **options: Any,
) -> bytes:
    order: ByteOrder = "big" if abi in BIG_ABIS else "little"
    builder = SFrameBuilder(version, order=order, abi=abi, fixed_ra=fixed_ra, fixed_fp=fixed_fp)
    builder.function(0x1000, size, rows, **options)
    return builder.bytes()


def texts(data: bytes, **options: Any) -> list[str]:
    """The rules of all rows, as people write them; also checks that the bytes come back."""
    section = decode(data, **options)
    assert encode(section) == data
    found = to_table(section)
    return [found.rule(row).text(found.machine) for row in range(len(found.row_rule))]


def rule_of(version: int, abi: int, words: list[int], *, base: int = 1, **options: Any) -> str:
    size = options.pop("word_size", 1)
    mangled = options.pop("mangled", False)
    data = one_function(version, abi, [row(0, base, words, size=size, mangled=mangled)], **options)
    (text,) = texts(data)
    return text


DRAP = bytes.fromhex(
    "e2de03040300f800 0100000006000000 29000000000000001000000000000000000000001c00000000000000"
    "0600000100 00043908 05045100 110a5100003300 130a33f8003300 160a5100003300 1b0a39080033 00"
)
"""The annotated example of FORMAT 1.8: gas 2.47.50 on amd64-drap.s."""
