"""What s390x-objdump's text says of an instruction: the second opinion on the decoder's tables.

The rule here starts from the other end: an instruction writes its first operand if that is a register, but for the
names below.
"""

from __future__ import annotations

import re
from typing import NamedTuple

FLOATS = {f"%f{number}": 16 + at for at, number in enumerate((0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15))}
REGISTERS = {f"%r{number}": number for number in range(16)} | FLOATS
REGISTERS |= {f"%v{number}": FLOATS[f"%f{number}"] for number in range(16)}


def named(names: str) -> frozenset[str]:
    return frozenset(names.split())


CONDITION = "(?:o|h|nle|l|nhe|lh|ne|e|nlh|he|nl|le|nh|no|)"
JUMP = re.compile(f"(j|b)(g?{CONDITION})r?")
COMPARED_JUMP = re.compile(f"(cg|clg|c|cl)(r|i)(j|b)({CONDITION})")
TRAP = re.compile(f"c(?:l?g?r|g?i|lfi|lgi|l|lg)t{CONDITION}")
COUNTED = re.compile("br?(?:ct|xh|xle|xl)[gh]?r?")
COMPARE = re.compile(
    "c|c[fg]|c[rhy]|cg[rfh]|cgfr|chy|cg?h?rl|cgfrl|cg?[hf]i|cghsi|ch?h?si|cih|chf|c[dex]b?r?|"
    "cl[ry]?|clg[rf]?|clgfr|clg?f?rl|clg?hrl|cl[fgi]+|cliy|cl[fgh]+si|clih|clhf|cl[hg]hsi|clc|clmy?|clmh|k[dex]br?"
)
STORE = re.compile("st(?!fle|ap|idp).*|vst(?:m|l|e[bhfg])?")
ONLY_READ = named(
    "pfd pfdrl bprp bpp ex exrl spm sfpc lfpc srnm srnmb ppa tend tbegin tabort mc ssm lctl lctlg trace sar cpya"
    " lam lamy tceb tcdb tcxb tm tmy tmhh tmhl tmlh tmll veclb vecb vtm nop nopr cp cvd cvdy cvdg cpdt cpxt czdt"
    " czxt"
)
PAIRS = named(
    "dr d dl dlr dlg dlgr dsg dsgr dsgf dsgfr mr m ml mlr mlg mlgr mg mgrk mfy flogr lpq lpd lpdg cds cdsy cdsg"
    " srda slda srdl sldl"
)
WIDE = named(
    "axbr sxbr mxbr dxbr sqxbr lpxbr lnxbr lcxbr ltxbr fixbr fixbra cxfbr cxfbra cxgbr cxgbra cxlfbr cxlgbr lxdbr"
    " lxebr lxdb lxeb lxr lzxr axr sxr mxr mxdr mxd mxdb"
)
BOTH_PAIRS = named("mvcl clcl mvcle clcle mvclu clclu cu12 cu14 cu21 cu24 cu41 cu42 klmd prno cuse")
BOTH = named("clst srst mvst srstu")
SECOND_PAIR = named("kmac kimd kdsa")
FIRST_AND_PAIR = named("km kmc kmf kmo kmctr kma")
FIXED = {"svc": {2}, "edmk": {1}, "trt": {1, 2}, "trtr": {1, 2}, "stfle": {0}, "pfpo": {1, 16, 17}, "ipk": {2}}
LAST_HALF = {"b": 8, "h": 4, "f": 2, "g": 1}
"""How many elements of a vector are in its floating point register."""
ELEMENT = re.compile("v(?:le|lei|lvg|lebr)([bhfg])")


class Text(NamedTuple):
    name: str
    operands: list[str]


def parsed(text: str) -> Text:
    """One instruction of objdump's."""
    name, _, rest = text.partition("\t")
    rest = rest.split("\t")[0].split(" ")[0]
    return Text(name.strip(), re.findall(r"[^,(]+(?:\([^)]*\))?", rest))


def memory(operand: str) -> tuple[int, str, str]:
    """Displacement, what stands first in the parentheses (index or length) and the base."""
    number, _, inside = operand.partition("(")
    first, _, base = inside.rstrip(")").rpartition(",")
    return int(number), first, base


def between(first: str, last: str) -> set[int]:
    """Registers from one to another, behind the last the first."""
    start = int(first[2:])
    return {(start + at) % 16 for at in range((int(last[2:]) - start) % 16 + 1)}


def pair(operand: str) -> set[int]:
    return {int(operand[2:]), (int(operand[2:]) + 1) % 16}


def writes(text: Text) -> set[int]:
    """The registers that an instruction writes, by their DWARF numbers."""
    name, operands = text
    if name in FIXED:
        return FIXED[name]
    if not operands or reads_only(name) or leaves_alone(text):
        return set()
    first = operands[0]
    if name in {"lm", "lmg", "lmy", "lmh", "lmd"}:
        return between(first, operands[1])
    if name == "vlm":
        count = (int(operands[1][2:]) - int(first[2:])) % 32 + 1
        vectors = [f"%v{(int(first[2:]) + at) % 32}" for at in range(count)]
        return {REGISTERS[vector] for vector in vectors if vector in REGISTERS}
    if name in WIDE:
        return {REGISTERS[first], FLOATS[f"%f{(int(first[2:]) + 2) % 16}"]}
    return more_than_one(name, operands) or ({REGISTERS[first]} if first in REGISTERS else set())


def more_than_one(name: str, operands: list[str]) -> set[int]:
    """The general registers of an instruction that writes more than its first operand."""
    first = operands[0]
    if name in PAIRS:
        return pair(first)
    if name in BOTH_PAIRS:
        return pair(first) | pair(operands[1])
    if name in FIRST_AND_PAIR:
        third = {int(operands[1][2:])} if name == "kmctr" else pair(operands[1]) | {0} if name == "kma" else set()
        return {int(first[2:])} | pair(operands[-1]) | third
    if name in SECOND_PAIR:
        return pair(operands[1])
    if name in BOTH:
        return {REGISTERS[first], REGISTERS[operands[1]]}
    return set()


def reads_only(name: str) -> bool:
    """Whether an instruction's name says that it changes no register."""
    return (
        name in ONLY_READ
        or any(one.fullmatch(name) for one in (COMPARE, STORE, TRAP, COMPARED_JUMP))
        or (JUMP.fullmatch(name) is not None and name != "bras")
    )


def leaves_alone(text: Text) -> bool:
    """Whether operands make an instruction write nothing that counts."""
    name, operands = text
    if name in {"ltr", "ltgr"}:
        return operands[0] == operands[1]
    if name in {"icm", "icmy", "icmh"}:
        return operands[1] == "0"
    if name in {"rosbg", "rnsbg", "rxsbg", "rosbgt", "rnsbgt", "rxsbgt"}:
        return int(operands[2]) >= 128 or name.endswith("t")
    if (found := ELEMENT.fullmatch(name)) is not None:
        where = operands[-1] if "(" not in operands[-1] else memory(operands[-1])[0]
        if name.startswith("vlvg") and "(" in operands[-1]:
            return False
        return int(where) % (2 * LAST_HALF[found[1]]) >= LAST_HALF[found[1]]
    return name == "bsm" and operands[0] == "%r0"


FLOWS = {"j": "JUMP", "jg": "JUMP", "brasl": "CALL", "bras": "CALL"}
CONDITIONS = {"h": "ABOVE", "l": "BELOW", "e": "EQUAL", "ne": "NOT_EQUAL", "lh": "NOT_EQUAL"}
CONDITIONS |= {"he": "ABOVE_EQUAL", "nl": "ABOVE_EQUAL", "le": "BELOW_EQUAL", "nh": "BELOW_EQUAL"}


def indirect(name: str, operands: list[str]) -> str:
    """Where control goes by a register, which may be none."""
    if name in {"lpsw", "pr"} or (operands[-1] in {"%r14", "0(%r14)"} and name != "basr"):
        return "RETURN"
    if operands[-1] == "%r0":
        return "NEXT"
    if name == "svc":
        return "SYSTEM"
    return "CALL_INDIRECT" if name == "basr" else "JUMP_INDIRECT"


def always(text: Text, address: int) -> tuple[str, str, int]:
    """Where a jump or a call goes; `bras` with another register than that for calls jumps over numbers behind it."""
    target = int(text.operands[-1], 16)
    flow = "JUMP" if text.name == "bras" and text.operands[0] != "%r14" else FLOWS[text.name]
    return ("TRAP", "OTHER", 0) if text.name in {"j", "jg"} and target == address + 2 else (flow, "OTHER", target)


def flow(text: Text, address: int) -> tuple[str, str, int] | None:
    """Where a direct branch, a jump or a return goes: flow, condition and target; None of what goes on."""
    name, operands = text
    if name in {"lpsw", "pr", "br", "b", "basr", "svc"}:
        return indirect(name, operands), "OTHER", 0
    if name in FLOWS:
        return always(text, address)
    if (found := COMPARED_JUMP.fullmatch(name)) is not None and found[3] == "j":
        if operands[-2] == "14" and not found[4]:
            return "JUMP", "OTHER", int(operands[-1], 16)
        condition = CONDITIONS.get(found[4], "OTHER")
        if not found[1].startswith("cl") and condition not in {"EQUAL", "NOT_EQUAL"}:
            condition = "OTHER"
        return "BRANCH", condition, int(operands[-1], 16)
    if name.startswith("j") and (found := JUMP.fullmatch(name)) is not None:
        if int(operands[-1], 16) == address + 2:
            return "NEXT", "OTHER", 0
        return "BRANCH", CONDITIONS.get(found[2].removeprefix("g"), "OTHER"), int(operands[-1], 16)
    if name.startswith("br") and COUNTED.fullmatch(name):
        return "BRANCH", "OTHER", int(operands[-1], 16)
    return None if name.startswith(("b", "c")) else ("NEXT", "OTHER", 0)


STORED = {"st": 4, "sty": 4, "sth": 2, "sthy": 2, "stc": 1, "stcy": 1, "ste": 4, "stey": 4, "strv": 4, "strvg": 8}
STORED |= {"strvh": 2, "stfh": 4, "stch": 1, "sthh": 2, "mvi": 1, "mviy": 1, "ni": 1, "oi": 1, "xi": 1, "vst": 16}
STORED |= {"mvhhi": 2, "mvhi": 4, "mvghi": 8, "asi": 4, "agsi": 8, "alsi": 4, "algsi": 8, "cs": 4, "csg": 8, "vstef": 4}
STORED |= {"stckf": 8, "stck": 8, "cvd": 8, "cds": 8, "cdsg": 16, "stfpc": 4}
STORED |= {f"la{what}{size}": 8 if size else 4 for what in ("a", "al", "n", "o", "x") for size in ("", "g")}
LOADED = {"lgf": (4, True), "ltgf": (4, True), "llgf": (4, False), "lgh": (2, True), "llgh": (2, False)}
LOADED |= {"lgb": (1, True), "llgc": (1, False)}
CONSTANTS = {"lghi": 0, "lgfi": 0, "llilf": 0, "llill": 0, "llilh": 16, "llihl": 32, "llihh": 48, "llihf": 32}
COPIES = {"lgr": "COPY", "ldr": "COPY", "ldgr": "COPY", "lgdr": "COPY", "ltgr": "COPY", "lgfr": "EXTEND"}
COPIES |= {"llgfr": "EXTEND", "ltgfr": "EXTEND"}
SUMS = {"agr": "ADD_REGISTERS", "algr": "ADD_REGISTERS", "agrk": "ADD_REGISTERS", "algrk": "ADD_REGISTERS"}
SUMS |= {"sgr": "SUBTRACT", "slgr": "SUBTRACT", "sgrk": "SUBTRACT", "slgrk": "SUBTRACT"}
COMPARED = {"cgr": (8, True), "clgr": (8, False), "cr": (4, True), "clr": (4, False), "cgrj": (8, True)}
COMPARED |= {"clgrj": (8, False), "crj": (4, True), "clrj": (4, False)}
WITH_NUMBER = {"cghi": (8, True), "cgfi": (8, True), "chi": (4, True), "cfi": (4, True), "clgfi": (8, False)}
WITH_NUMBER |= {"clfi": (4, False), "cgij": (8, True), "cij": (4, True), "clgij": (8, False), "clij": (4, False)}
Fields = dict[str, int | str | bool]


def effect(text: Text) -> Fields | None:
    """The exact effect of an instruction by its name, None of one that needs not have one."""
    name, operands = text
    first = REGISTERS.get(operands[0], -1) if operands else -1
    if (found := COMPARED_JUMP.fullmatch(name)) is not None and found[3] == "j":
        name = found[1] + found[2] + "j"
    if len(operands) == 4:
        return None
    if name in COMPARED:
        width, signed = COMPARED[name]
        return {"effect": "COMPARE", "first": first, "second": REGISTERS[operands[1]], "width": width, "signed": signed}
    if name in WITH_NUMBER:
        width, signed = WITH_NUMBER[name]
        return {
            "effect": "COMPARE_CONSTANT", "first": first, "offset": int(operands[1]), "width": width, "signed": signed
        }  # fmt: skip
    if name in COPIES and (name != "ltgr" or operands[0] != operands[1]):
        return {"effect": COPIES[name], "first": first, "second": REGISTERS[operands[1]]}
    if name in SUMS:
        return {
            "effect": SUMS[name], "first": first, "base": REGISTERS[operands[-2]], "index": REGISTERS[operands[-1]]
        }  # fmt: skip
    if name in CONSTANTS:
        value = (int(operands[1]) << CONSTANTS[name]) & (1 << 64) - 1
        return {"effect": "CONSTANT", "first": first, "offset": value - (1 << 64) if value >> 63 else value}
    if name == "larl":
        return {"effect": "CONSTANT", "first": first, "offset": int(operands[1], 16)}
    return sum_effect(name, operands, first)


def sum_effect(name: str, operands: list[str], first: int) -> Fields | None:
    """The same of additions, and of loads that only test."""
    if name in {"ltgr", "ltr"} and operands[0] == operands[1]:
        return {"effect": "COMPARE_CONSTANT", "first": first, "width": 8 if name == "ltgr" else 4, "signed": True}
    if name in {"aghi", "agfi", "algfi", "slgfi", "aghik", "alghsik"}:
        number = int(operands[-1])
        base = REGISTERS[operands[-2]]
        return {"effect": "ADD", "first": first, "base": base, "offset": -number if name == "slgfi" else number}
    return memory_effect(name, operands, first)


def memory_effect(name: str, operands: list[str], first: int) -> Fields | None:
    """The same of what loads, stores or takes an address."""
    if name in {"la", "lay"}:
        where = place(operands[1])
        kind = "ADD_REGISTERS" if "index" in where else "ADD" if "base" in where else "CONSTANT"
        return {"effect": kind, "first": first, **where}
    if name in {"stmg", "lmg"}:
        count = (REGISTERS[operands[1]] - first) % 16 + 1
        second = (first + 1) % 16 if count == 2 else -1
        kind = "STORE" if name == "stmg" else "LOAD"
        return {"effect": kind, "first": first, "second": second, "count": count, **known_place(operands[2])}
    if name in {"stg", "std", "stdy"}:
        return {"effect": "STORE", "first": first, **known_place(operands[1])}
    if name in {"lg", "ltg"}:
        where = known_place(operands[1])
        return {"effect": "LOAD" if where.get("index", 0) == 0 else "LOAD_TABLE", "first": first, **where}
    if name in {"ld", "ldy"}:
        where = known_place(operands[1])
        return {"effect": "NOTHING"} if "index" in where else {"effect": "LOAD", "first": first, **where}
    if name in LOADED:
        width, signed = LOADED[name]
        return {"effect": "LOAD_TABLE", "first": first, "width": width, "signed": signed, **place(operands[1])}
    if name in {"mvc", "xc", "nc", "oc", "tr", "mvn", "mvz"}:
        return {"effect": "STORE", "width": int(memory(operands[0])[1]), **known_place(operands[0], length=True)}
    if name in STORED:
        stored = next(one for one in operands if one[0] != "%")
        return {"effect": "STORE", "width": STORED[name], **known_place(stored)}
    return None


def place(operand: str, length: bool = False) -> dict[str, int]:
    """Offset, base and index of an operand in memory, so far as it has them."""
    number, index, base = memory(operand)
    registers = [REGISTERS[one] for one in (base, "" if length else index) if one in REGISTERS and one != "%r0"]
    return {"offset": number} | dict(zip(("base", "index"), registers, strict=False))


def known_place(operand: str, length: bool = False) -> dict[str, int]:
    """The same, where an index says that no register leads there."""
    found = place(operand, length)
    return found if "base" in found else found | {"index": 0}
