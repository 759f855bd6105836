"""Lists of functions that every version can say, and sections built of them and held against them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from walkback.base.arch import AARCH64, AMD64, S390X, Machine
from walkback.sframe.builder import SectionBuilder
from walkback.sframe.decoding import decode
from walkback.sframe.encoding import encode
from walkback.sframe.rules import to_table
from walkback.sframe.section import Section
from walkback.table.rule import OUTERMOST, Part, PartKind, Rule
from walkback.table.table import UnwindTable

TOP = 2**64
WIDE = st.one_of(
    st.integers(-128, 127),
    st.sampled_from([-129, 128, -(2**15), 2**15 - 1, -(2**15) - 1, 2**15, -(2**31), 2**31 - 1]),
    st.integers(-(2**31), 2**31 - 1),
)
REGISTER = st.one_of(st.integers(0, 40), st.sampled_from([2**13 - 1, 2**13, 2**29 - 1]))
ABSENT = st.just(Part())


def at_cfa(offsets: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.builds(Part, st.just(PartKind.AT_CFA), st.just(0), offsets)


def based(kinds: list[PartKind], registers: SearchStrategy[Any], offsets: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.builds(Part, st.sampled_from(kinds), registers, offsets)


ANY = st.one_of(at_cfa(WIDE), based([PartKind.REGISTER, PartKind.AT_REGISTER], REGISTER, WIDE))
SAVED = at_cfa(WIDE)


def default_rules(machine: Machine, version: int) -> SearchStrategy[Any]:
    """Rules that default rows can say."""
    base = st.sampled_from([machine.sp, machine.fp])
    if machine is AMD64:
        fixed = st.just(Part(PartKind.AT_CFA, 0, -8))
        return st.builds(Rule, based([PartKind.REGISTER], base, WIDE), fixed, st.one_of(ABSENT, SAVED))
    if machine is AARCH64:
        cfa = based([PartKind.REGISTER], base, WIDE)
        return st.one_of(
            st.builds(Rule, cfa, ABSENT, ABSENT, st.booleans()),
            st.builds(Rule, cfa, SAVED, st.one_of(ABSENT, SAVED), st.booleans()),
        )
    scaled = WIDE.map(lambda word: 8 * word + 160)
    cfa = based([PartKind.REGISTER], base, scaled)
    even = WIDE.map(lambda word: word & ~1) if version == 2 else WIDE
    fp = at_cfa(even)
    ra = at_cfa(even.filter(bool))
    if version == 2:
        register = based([PartKind.REGISTER], st.one_of(st.integers(0, 40), st.just(2**30 - 1)), st.just(0))
        ra, fp = st.one_of(ra, register), st.one_of(fp, register)
    return st.builds(Rule, cfa, st.one_of(ABSENT, ra), st.one_of(ABSENT, fp))


def flex_rules(machine: Machine) -> SearchStrategy[Any]:
    """Rules that flex rows can say."""
    offsets = WIDE.map(lambda word: 8 * word + 160) if machine is S390X else WIDE
    cfa = based([PartKind.REGISTER, PartKind.AT_REGISTER], REGISTER, offsets)
    ra = ANY if machine is AMD64 else st.one_of(ABSENT, ANY)
    signed = st.booleans() if machine is AARCH64 else st.just(False)
    return st.builds(Rule, cfa, ra, st.one_of(ABSENT, ANY), signed)


def rules_of(machine: Machine, version: int) -> SearchStrategy[Any]:
    rules = [default_rules(machine, version)]
    if version > 1:
        rules.append(st.just(OUTERMOST))
    if version == 3:
        rules.append(flex_rules(machine))
    return st.one_of(rules)


KINDS = [(AMD64, 1), (AMD64, 2), (AMD64, 3), (AARCH64, 1), (AARCH64, 2), (AARCH64, 3), (S390X, 2), (S390X, 3)]


@st.composite
def function_lists(
    draw: DrawFn, machine: Machine, version: int, starts: SearchStrategy[Any], sizes: SearchStrategy[Any]
) -> list[tuple[int, int, list[tuple[int, Rule]], dict[str, Any]]]:
    """Disjoint functions: (start, size, rows, options)."""
    functions = []
    taken: list[Any] = []
    palette = draw(st.lists(rules_of(machine, version), min_size=1, max_size=4))
    for _ in range(draw(st.integers(0, 4))):
        start, size = draw(starts), draw(sizes)
        if start + size >= TOP or any(start < end and first < start + max(size, 1) for first, end in taken):
            continue
        taken.append((start, start + max(size, 1)))
        options: dict[str, Any] = {}
        if draw(st.integers(0, 3)) == 0:
            options["block"] = 16 if version == 1 else draw(st.integers(1, 255))
        if machine is AARCH64:
            options["pauth_key"] = draw(st.sampled_from("AB"))
        if version == 3:
            options["signal"] = draw(st.booleans())
        limit = options.get("block") or size
        places = st.one_of(st.integers(0, max(limit - 1, 0)), st.integers(0, min(max(limit - 1, 0), 300)))
        offsets = sorted(draw(st.sets(places, max_size=4)))
        functions.append((start, size, [(at, draw(st.sampled_from(palette))) for at in offsets], options))
    return functions


def model(
    functions: list[tuple[int, int, list[tuple[int, Rule]], dict[str, Any]]], pc: int
) -> tuple[int, Rule | None] | None:
    """(function, rule) at an address, by searching everything."""
    for number, (start, size, rows, options) in enumerate(functions):
        if start <= pc < start + size:
            offset = (pc - start) % options["block"] if options.get("block") else pc - start
            held = [rule for at, rule in rows if at <= offset]
            return number, held[-1] if held else None
    return None


def places_of(functions: list[tuple[int, int, list[tuple[int, Rule]], dict[str, Any]]]) -> list[int]:
    places = set()
    for start, size, rows, options in functions:
        block = options.get("block") or 0
        for at in (0, size, *(at for at, _ in rows), *(at + block for at, _ in rows), block):
            places |= {start + at - 1, start + at, start + at + 1}
    return sorted(pc for pc in places if 0 <= pc < TOP - 1)


def compare(functions: list[tuple[int, int, list[tuple[int, Rule]], dict[str, Any]]], table: UnwindTable) -> None:
    """The table says what the functions say; its ranges may be in another order."""
    for pc in places_of(functions):
        expected, found = model(functions, pc), table.find(pc)
        if expected is None:
            assert found is None
            continue
        start, size, _, options = functions[expected[0]]
        assert (found.start, found.size, found.rule) == (start, size, expected[1])
        assert found.signal == options.get("signal", False)
        assert found.pauth_key == "AB".index(options.get("pauth_key", "A"))


def collect(
    machine: Machine, functions: list[tuple[int, int, list[tuple[int, Rule]], dict[str, Any]]]
) -> SectionBuilder:
    builder = SectionBuilder(machine)
    for start, size, rows, options in functions:
        builder.function(start, size, rows, **options)
    return builder


def check(
    machine: Machine,
    version: int,
    functions: list[tuple[int, int, list[tuple[int, Rule]], dict[str, Any]]],
    **options: Any,
) -> Section:
    builder = collect(machine, functions)
    compare(functions, builder.table())
    built = builder.build(version=version, **options)
    assert (built.refused, built.split) == ((), ())
    data = encode(built.section)
    section = decode(data, address=options.get("address", 0))
    assert encode(section) == data
    assert section.gaps == ()
    assert section.code_address.tolist() == built.section.code_address.tolist() == sorted(f[0] for f in functions)
    compare(functions, to_table(section))
    check_minimal(section)
    return section


def check_minimal(section: Section) -> None:
    """No field is wider than it has to be, and the header counts right."""
    shapes = section.shapes
    for shape in range(len(shapes)):
        words = shapes.words[shapes.first_word[shape] : shapes.first_word[shape + 1]].tolist()
        size, flex = int(shapes.word_size[shape]), shapes.fde_type[shape] == 1
        if size == 1:
            continue
        half = 8 * (size // 2)
        control = control_positions(words) if flex else set()
        fits = [
            0 <= word % (1 << 8 * size) < 1 << half if n in control else -(1 << half - 1) <= word < 1 << half - 1
            for n, word in enumerate(words)
        ]
        assert not all(fits)
    functions = section.functions
    for number in range(len(functions)):
        first, rows = int(functions.first_row[number]), int(functions.rows[number])
        largest = int(section.row_start[first : first + rows].max(initial=0))
        assert functions.fre_type[number] == (largest > 0xFF) + (largest > 0xFFFF)
    assert (section.num_fdes, section.num_fres) == (len(functions), len(section.row_start))
    assert section.length == section.end


def control_positions(words: list[int]) -> set[int]:
    positions, at = set(), 0
    while at < len(words):
        positions.add(at)
        at += 2 if words[at] else 1
    return positions
