"""Files whose functions return with another value in a register that the ABI lets them keep.

PHP's virtual machine has its program counter in such a register, which all its handlers change for their caller. No
table can be wrong about a value that nobody expects to be kept. Where only a few functions do so, they may have kept
the value where it is not followed, as in a vector register.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arch import MACHINES, Machine
from walkback.base.arrays import I64, U64, is_one_of
from walkback.code._listing import COLUMNS, listing
from walkback.code.effects import Flow
from walkback.proof.image import Image
from walkback.proof.numbering import KEPT
from walkback.proof.ranges import Units
from walkback.proof.values import Verdict

_FLOW = COLUMNS.index("flow")
_MOST = 1 << 16
"""Runs that are looked at."""
_FEW = 16
"""Functions."""


def returning_changed(runs: U64, units: Units, image: Image, machine: Machine) -> I64:
    """The ranges, with their parts, in which what is wrong about such a register ends with a return."""
    registers = [register for register in KEPT[machine] if register not in {machine.fp, machine.sp, machine.ra}]
    wrong = runs[is_one_of(runs[:, 3], Verdict.WRONG)]
    wrong = wrong[is_one_of(wrong[:, 4], *registers)][:_MOST]
    if len(wrong) < _FEW:
        return np.zeros(0, np.int64)
    places = image.places(wrong[:, 1], wrong[:, 2].astype(np.int64))
    number = MACHINES.index(machine)
    returns = np.array(
        [
            place >= 0 and listing(number, image.data[place : place + size].data, address)[-1, _FLOW] == Flow.RETURN
            for place, address, size in zip(places.tolist(), *wrong[:, 1:3].T.tolist(), strict=True)
        ],
        np.bool_,
    )
    changed = wrong[returns]
    common = np.flatnonzero(np.bincount(changed[:, 4].astype(np.int64), minlength=1) >= _FEW)
    found = changed[np.isin(changed[:, 4], common), 0].astype(np.int64)
    unit = np.repeat(np.arange(len(units.first) - 1), np.diff(units.first))
    chosen: I64 = units.members[np.isin(unit, unit[np.isin(units.members, found)])]
    return chosen
