"""Names that nobody means well with: those that unfold to too much, nest without end, or are none."""

from __future__ import annotations

import random
import signal
import string
import subprocess
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from effort import examples
from walkback.symbols import cxa
from walkback.symbols.demangle import demangle, without_parameters
from walkback.symbols.rustv0 import demangle_v0

needs_cxa = pytest.mark.skipif(cxa.demangler() is None, reason="needs a C++ library")
DIGITS = string.digits + string.ascii_lowercase + string.ascii_uppercase


def one(name: str) -> str:
    return demangle([name])[0]


def doubling(levels: int) -> str:
    """Each pair has two of the pairs before it."""
    pairs = "".join(f"S_IS{digit}_S{digit}_E" for digit in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:levels])
    return f"_Z1fSt4pairIiiE{pairs}"


def base62(value: int) -> str:
    text = ""
    value -= 1
    while value >= 0:
        text, value = DIGITS[value % 62] + text, value // 62 - 1 if value >= 62 else -1
    return text + "_"


@needs_cxa
def test_names_that_unfold_beyond_measure_stay() -> None:
    begun = time.process_time()
    assert demangle([doubling(3)], parameters=True)[0].startswith("f(std::pair<int, int>, std::pair<")
    assert demangle([doubling(35), "_Z1fv", doubling(28)]) == [doubling(35), "f", doubling(28)]
    assert time.process_time() - begun < 20


@needs_cxa
def test_of_suspects_only_the_guilty_stay() -> None:
    innocent = "_Z1f" + "S_".join(["1A"] + [""] * 34)
    assert not cxa._is_harmless(innocent.encode())
    assert demangle([innocent, doubling(35), innocent]) == ["f", doubling(35), "f"]


@needs_cxa
def test_no_process_is_left_if_the_harmless_names_are_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def begin(*arguments: object, **more: object) -> subprocess.Popen[bytes]:
        begun.append(popen(*arguments, **more))  # type: ignore[call-overload]  # as they come
        return begun[-1]

    def interrupted(_: bytes) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", begin)
    monkeypatch.setattr(cxa, "demangler", lambda: interrupted)
    with pytest.raises(KeyboardInterrupt):
        cxa.demangle([doubling(35).encode(), b"_Z1fv"])
    assert [child.returncode for child in begun] == [-signal.SIGKILL]


@pytest.mark.whole
@needs_cxa
@pytest.mark.parametrize("part", ["P", "1AI", "PF", "A1_", "N1A", "Z", "DTng", "F", "ILZ", "cv", "XspT_", "Dp"])
@pytest.mark.parametrize("count", [500, 2000, 10_000, 1 << 20])
def test_endless_nesting(part: str, count: int) -> None:
    for name in ("_Z1f" + part * count + "i", "_ZN" + part * count + "i" + "E" * count):
        assert one(name)


@pytest.mark.parametrize(
    "name",
    [
        "_R" + "Nv" * 100_000 + "C1a1b",
        "_RMC0" + "R" * 20_000 + "u",
        "_RMC0" + "T" * 500 + "E" * 500,
        "_RMC0FGzzzz_Eu",
        "_RC" + "9" * 10_000,
        "_RMC0" + "F" * 3000 + "E" * 3000,
        "_RNvC1au2000" + "a" * 2000,
    ],
)
def test_endless_rust(name: str) -> None:
    assert one(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "_ZN" + "1" * 32_000,
        "_ZN1" + "17h0123456789abcdefE.a" * 1400 + "!",
        "_ZN1" + "1" * 10_000 + "17h0123456789abcdefE.a" * 900 + "!",
        "_Z1fv" + "." * 32_000,
        "_RNvC1a1" + "_" * 30_000,
        "camlA" + "$2" * 16_000 + "!",
        doubling(35) + ".cold" * 1000,
    ],
    ids=lambda name: name[:12],
)
def test_long_names_take_no_more_time_than_others(name: str) -> None:
    begun = time.process_time()
    assert one(name) == name
    assert time.process_time() - begun < 2


def test_backreferences_that_double() -> None:
    text, place = "INvC1a1fTiiE", 8
    for _ in range(40):
        place, text = len(text), f"{text}TB{base62(place)}B{base62(place)}E"
    begun = time.process_time()
    assert demangle_v0("_R" + text[: text.index("TB")] + "E") == "a::f::<(isize, isize)>"
    assert demangle_v0(f"_R{text}E") is None
    assert time.process_time() - begun < 2


@settings(max_examples=examples(500), deadline=None)
@given(st.text("CNMXYIBvtsu019_aEDTRQPOFSAKLGpnlbcjU", max_size=40))
@example("NvC1a1f")
@example("C0")
def test_any_text_is_rust_or_stays(text: str) -> None:
    found = one(f"_R{text}")
    assert found == f"_R{text}" or "::" in found or found.strip()


@needs_cxa
def test_any_text_is_cpp_or_stays() -> None:
    source = random.Random(5)
    parts = [
        "S_",
        "S0_",
        "T_",
        "I",
        "E",
        "N",
        "St",
        "1A",
        "i",
        "P",
        "K",
        "F",
        "X",
        "Dp",
        "DT",
        "cv",
        "cl",
        "L",
        "J",
        "Z",
    ]
    names = ["_Z1f" + "".join(source.choices(parts, k=source.randrange(1, 40))) for _ in range(20_000)]
    assert len(demangle(names)) == len(names)


@settings(max_examples=examples(300), deadline=None)
@given(st.text("ab<>()[]{} :*&~-operator,", max_size=40))
def test_any_text_can_lose_its_parameters(text: str) -> None:
    assert len(without_parameters(text)) <= len(text)
