"""The numbers that the kernels of the walk have are those of the rest."""

import re
from pathlib import Path

import numpy as np

from walkback.arch import MACHINES
from walkback.unwind import abi, points, pool, samples, stacks
from walkback.unwind.abi import ABIS, BuiltIn, Flag
from walkback.unwind.stacks import End, How
from walkback.unwind.steps import built_in

FOLDER = Path(abi.__file__).parent


def declared(name: str) -> dict[str, int]:
    """The constants of a kernel."""
    text = (FOLDER / f"{name}.py").read_text()
    found = re.findall(r"^_([A-Z_]+) = cython\.declare\(cython\.\w+, (\w+)\)$", text, re.MULTILINE)
    return {name: int(value, 0) for name, value in found}


def enumerations(name: str) -> dict[str, dict[str, int]]:
    """The enumerations of the C face of a module."""
    text = (FOLDER / f"{name}.pxd").read_text()
    bodies = re.findall(r"^cdef enum (\w+):\n((?: {4}\w+ = \d+\n)+)", text, re.MULTILINE)
    assert len(bodies) == text.count("cdef enum ")
    return {name: {key: int(value) for key, value in re.findall(r"(\w+) = (\d+)", body)} for name, body in bodies}


def test_the_enumerations_of_the_kernels_are_those_of_python() -> None:
    for module in (stacks, abi):
        for name, members in enumerations(module.__name__.rpartition(".")[2]).items():
            whole = {one.name: one.value for one in getattr(module, name)}
            assert members == {key: whole[key] for key in members}, name
    assert set(enumerations("stacks")["End"]) == set(End.__members__)
    assert set(enumerations("abi")["Flag"]) == set(Flag.__members__)


def test_the_constants_of_the_kernels_are_those_of_python() -> None:
    tables, frame, expression = declared("_tables"), declared("_frame"), declared("_expression")
    assert (tables["NO_STEP"], tables["BLOCK"]) == (points.NO_STEP, points.BLOCK)
    assert (tables["NOT_LOADED"], tables["UNSEEN"]) == (pool.NOT_LOADED, pool.UNSEEN)
    assert (frame["PC"], frame["COLUMNS"]) == (samples.PC, samples.COLUMNS)
    for name in ("DONE", "MEMORY", "UNKNOWN"):
        assert frame[name] == expression[name]
    assert declared("_walk")["WANTED"] not in set(End)


def test_the_steps_before_all_tables_have_their_numbers() -> None:
    for machine in MACHINES:
        how = built_in(machine).how.tolist()
        assert how[: BuiltIn.CONTEXT] == [How[one.name] for one in BuiltIn if one < BuiltIn.CONTEXT]
        assert how[BuiltIn.CONTEXT :] == [How.SIGNAL] * len(ABIS[machine].trampolines)


def test_flags_have_room_in_their_column() -> None:
    assert max(Flag) <= np.iinfo(np.uint8).max
