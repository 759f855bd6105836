"""Lines of instructions, as Python itself has them."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

from walkback.runtimes.python.lines import LineTable


def codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def sources() -> Iterator[CodeType]:
    """The code of the standard library, and of what the compiler has other forms for."""
    folder = Path(random.__file__).parent
    for path in sorted(folder.glob("[a-d]*.py")):
        yield from codes(compile(path.read_bytes(), str(path), "exec", dont_inherit=True))
    yield from codes(compile("x = (\n" + "\n" * 5000 + "1 +" + " " * 900 + "\n" * 300 + "f(\n))\n", "far", "exec"))


def test_lines_are_those_of_python() -> None:
    count = 0
    for code in sources():
        table = LineTable(code.co_linetable, code.co_firstlineno)
        lines = [line or 0 for line, *_ in code.co_positions()]
        assert [table.find(number) for number in range(len(lines))] == lines, code
        assert table.find(-1) == code.co_firstlineno
        assert table.find(len(lines) + 1) == 0
        count += len(lines)
    assert count > 10_000, sys.version


def test_damaged_tables_have_lines_or_none() -> None:
    rng = random.Random(2)
    for _ in range(2000):
        table = LineTable(rng.randbytes(rng.randrange(60)), rng.randrange(100))
        assert all(0 <= table.find(number) < 2**31 for number in range(-1, 200))
    assert LineTable(b"\xf0" + b"\x7f" * 100_000, 5).find(0) in range(2**31)
