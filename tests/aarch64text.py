"""What objdump's text of instructions of AArch64 says of flow, registers and memory."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from peers import run
from walkback.code.effects import NONE, Condition, Effect, Flow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

SP = 31
LANE = re.compile(r"v\d+\.([bhsd])\[(\d+)\]")
LANES = {"b": 1, "h": 2, "s": 4, "d": 8}
WORD = 8
VECTORS = 32
UNKNOWN = re.compile(r"undefined|\.inst|<unknown>")
REGISTER = re.compile(r"(?:[xw](\d+)|(w?sp)|[vzqdshb](\d+)(?:\.\w+)?(?:\[\d+\])?)!?")
LETTER_WIDTHS = {"w": 4, "x": 8, "b": 1, "h": 2, "s": 4, "d": 8, "q": 16}
CONDITIONS = dict.fromkeys(("cs", "hs"), Condition.ABOVE_EQUAL) | dict.fromkeys(("cc", "lo"), Condition.BELOW)
CONDITIONS |= {"eq": Condition.EQUAL, "ne": Condition.NOT_EQUAL, "hi": Condition.ABOVE, "ls": Condition.BELOW_EQUAL}
FLOWS = dict.fromkeys(("ret", "retaa", "retab", "retaasppc", "retabsppc", "retaasppcr", "retabsppcr"), Flow.RETURN)
FLOWS |= dict.fromkeys(("eret", "eretaa", "eretab", "drps"), Flow.RETURN)
FLOWS |= dict.fromkeys(("brk", "hlt", "udf", "tcancel", "dcps1", "dcps2", "dcps3"), Flow.TRAP)
FLOWS["svc"] = Flow.SYSTEM
FLOWS |= dict.fromkeys(("br", "braa", "brab", "braaz", "brabz"), Flow.JUMP_INDIRECT)
FLOWS |= dict.fromkeys(("blr", "blraa", "blrab", "blraaz", "blrabz"), Flow.CALL_INDIRECT)
FLOWS |= dict.fromkeys(("cbz", "cbnz", "tbz", "tbnz"), Flow.BRANCH)
FLOWS |= {"b": Flow.JUMP, "bl": Flow.CALL, "b.al": Flow.JUMP, "b.nv": Flow.JUMP, "bc.al": Flow.JUMP, "bc.nv": Flow.JUMP}
FIXED = {"svc": {0}, "hvc": {0, 1, 2, 3}, "smc": {0, 1, 2, 3}, "xpaclri": {30}, "pacm": set[int]()}
for act, key in product(("pac", "aut", "pacnb"), ("ia", "ib")):
    FIXED |= {f"{act}{key}{end}": {30} for end in ("sp", "z", "sppc", "sppcr")}
    FIXED |= {f"{act}{key}{end}": {17} for end in ("1716", "171615")}
CONDITIONAL = re.compile(r"bc?\.(\w\w)|cb[bh]?(gt|ge|hi|hs|eq|ne|lt|le|lo|ls|cc|cs)")
NO_DESTINATION = re.compile(
    r"f?cc?m[pn][ep]?|tst|nop|hint|msrr?|sysp?|dc|ic|at|tlbip?|cfp|dvp|cpp|cosp|wf[ei]t|rmif|setf8|setf16|trcit|cterm(eq|ne)"
    r"|gcs(ss1|push[mx]|popc?x|t?str)|gcssttr|brb|apas|mlbi|gic|gsb|plbi"
)
PREFETCH = re.compile(r"r?prfu?[mbhwd]")
# What they load is the second register; of pairs both.
ATOMIC = re.compile(
    r"ldt?(add|clr|eor|set|[su](max|min))a?l?[bh]?|swpt?a?l?[bh]?|ld(bf|f)(add|(max|min)(nm)?)a?l?|rcws?(clr|set|swp)a?l?"
)
ATOMIC_PAIR = re.compile(r"(ldclr|ldset|swp|rcws?(clr|set|swp))pa?l?")
COMPARE_AND_SWAP = re.compile(r"(rcws?)?cas(p?)a?l?t?[bh]?")
STATUS = re.compile(r"st(l|t|lt)?x[rp][bh]?|st64bv0?")
COPY = re.compile(r"(cpy|set)[a-z]+")


class Said(NamedTuple):
    """What the text of one instruction says."""

    text: str
    flow: Flow
    written: set[int]
    fields: dict[str, int] | None
    """Columns of the listing, for instructions on which proofs rest; None for others."""


def texts(words: npt.NDArray[np.uint32], address: int, folder: Path) -> Iterator[str]:
    """The text of each word."""
    (folder / "words").write_bytes(words.astype("<u4").tobytes())
    flags = ("-D", "-z", "-b", "binary", "-m", "aarch64", f"--adjust-vma={address:#x}")
    for line in run("aarch64-objdump-new", *flags, folder / "words", check=True).stdout.decode().splitlines():
        parts = line.split("\t", 2)
        if len(parts) == 3 and parts[0].endswith(":"):
            yield re.sub(r"\s*(//|;|<).*", "", parts[2].replace("\t", " "))


def said(text: str) -> Said | None:
    """What this text says, or None where objdump knows no such instruction."""
    if UNKNOWN.search(text):
        return None
    name, _, rest = text.partition(" ")
    operands = [one.strip() for one in re.findall(r"(?:[^,\[{]|\[[^\]]*\]|\{[^}]*\})+", rest)]
    flow = FLOWS.get(name, Flow.BRANCH if CONDITIONAL.fullmatch(name) else Flow.NEXT)
    return Said(text, flow, written(name, operands), fields(name, operands, flow))


def register(operand: str) -> int | None:
    """The number of a register, None of anything else and of those that are always zero."""
    found = REGISTER.fullmatch(operand.strip())
    if not found:
        return None
    general, pointer, vector = found.groups()
    return int(general) if general else SP if pointer else VECTORS + int(vector)


def registers(operand: str) -> set[int]:
    """The registers that an operand names, of which lists have several."""
    if not operand.startswith("{"):
        return {one for one in [register(operand)] if one is not None}
    names = operand[1 : operand.index("}")]
    first, dash, last = names.partition("-")
    if dash and (low := register(first)) is not None and (high := register(last)) is not None:
        return {VECTORS + (low + at) % 32 for at in range((high - low) % 32 + 1)}
    return set().union(*(registers(one.strip()) for one in names.split(",")))


def moved_base(operands: list[str]) -> tuple[int, int | None] | None:
    """The base register that an access moves, and by how much, or None for the value of a register."""
    for at, operand in enumerate(operands):
        if operand.startswith("["):
            base, _, number = operand[1:].rstrip("!]").partition(",")
            base_register = register(base)
            if base_register is None or base_register >= VECTORS:
                return None
            if operand.endswith("!"):
                return base_register, constant(number)
            if at + 1 < len(operands):
                behind = operands[at + 1]
                return base_register, constant(behind) if behind.startswith("#") else None
    return None


def constant(operand: str) -> int:
    """A number, with or without its sign of being one."""
    return int(operand.strip().removeprefix("#"), 0) if operand.strip() else 0


def written(name: str, operands: list[str]) -> set[int]:
    """The registers that change; of calls those that the instruction itself changes."""
    if COPY.fullmatch(name) and any(one.endswith("!") for one in operands):
        return set().union(*(registers(one.strip("[]!")) for one in operands if one.endswith("!")))
    changed = destinations(name, operands)
    moves = moved_base(operands)
    if moves and moves[1] != 0 and not name.startswith("prf"):
        changed |= {moves[0]}
    elif name.startswith("ldra") and operands[-1].endswith("!"):
        changed |= registers(operands[-1][1:].split(",")[0].rstrip("]!"))
    return changed


def destinations(name: str, operands: list[str]) -> set[int]:
    """The registers that get results."""
    if name == "svc":
        return FIXED[name]
    if name in FLOWS or NO_DESTINATION.fullmatch(name) or PREFETCH.fullmatch(name) or CONDITIONAL.fullmatch(name):
        return {30} if name.startswith(("bl", "reta")) else set()
    if name == "smstart":
        return set(range(VECTORS, 64)) if operands[:1] != ["za"] else set()
    if name == "smstop":  # functions are entered outside of streaming mode, where it changes nothing
        return set()
    if name in FIXED and not (operands and register(operands[0]) is not None and name.endswith("z")):
        return FIXED[name]
    return results(name, operands)


def results(name: str, operands: list[str]) -> set[int]:
    """The same of instructions that say where results go."""
    if name in {"mov", "ins"} and (lane := LANE.fullmatch(operands[0])) and LANES[lane[1]] * int(lane[2]) >= WORD:
        return set()  # calls keep only the lower half
    if name.startswith("st"):
        return registers(operands[0]) if STATUS.fullmatch(name) else set()
    if ATOMIC.fullmatch(name):
        return registers(operands[1])
    swap = COMPARE_AND_SWAP.fullmatch(name)
    if ATOMIC_PAIR.fullmatch(name) or (swap and swap[2]) or name == "mrrs":
        return registers(operands[0]) | registers(operands[1])
    if name == "ld64b":
        return {at + one for one in registers(operands[0]) for at in range(8)}
    if name.startswith("ld"):
        before = next((at for at, one in enumerate(operands) if one.startswith("[")), len(operands))
        return set().union(*map(registers, operands[:before]))
    return registers(operands[0]) if operands else set()


def fields(name: str, operands: list[str], flow: Flow) -> dict[str, int] | None:
    """What the listing has to have in its columns, for what moves and what keeps registers."""
    if flow in {Flow.JUMP, Flow.BRANCH, Flow.CALL}:
        condition = CONDITIONS.get(name.partition(".")[2], Condition.OTHER) if "." in name else Condition.OTHER
        return {"target": int(operands[-1], 16), "condition": condition}
    if flow in {Flow.JUMP_INDIRECT, Flow.CALL_INDIRECT}:
        return {"first": number_of(operands[0])}
    if name in {"ldp", "stp", "ldr", "str", "ldur", "stur", "ldnp", "stnp"}:
        return access(name, operands)
    if name in {"add", "sub", "mov", "and", "cmp"} and operands[0][0] in "xs" and len(operands) > 1:
        return arithmetic(name, operands)
    return None


def number_of(operand: str) -> int:
    """The register's number, or that there is none."""
    found = register(operand)
    return NONE if found is None else found


def access(name: str, operands: list[str]) -> dict[str, int] | None:
    """Loads and stores of one register or two, at a base and a number."""
    place = next((at for at, one in enumerate(operands) if one.startswith("[")), None)
    if (
        place is None
        or operands[0][0] in "pz"
        or "x" in operands[place].partition(",")[2]
        or "w" in operands[place][4:]
    ):
        return None
    width = LETTER_WIDTHS[operands[0][0]]
    base, _, offset = operands[place][1:].rstrip("!]").partition(",")
    expected = {"base": number_of(base), "offset": constant(offset), "index": NONE}
    moves = moved_base(operands)
    if moves and moves[1] is not None:
        before = operands[place].endswith("!")
        expected |= {"offset": 0, "moved": moves[1], "before": before}
    named = width == 8 or operands[0][0] == "q"
    if name.startswith("ld") and not named:
        return expected
    expected["effect"] = Effect.LOAD if name.startswith("ld") else Effect.STORE
    if not named:
        return expected | {"first": NONE, "width": width * place}
    expected |= {"first": number_of(operands[0]), "width": width, "count": place}
    return expected | ({"second": number_of(operands[1])} if place == 2 else {})


def arithmetic(name: str, operands: list[str]) -> dict[str, int] | None:
    """Sums, copies, masks and comparisons of 64 bits."""
    first, *sources = operands
    if not re.fullmatch(r"x\d+|sp", first) or register(sources[0]) is None:
        return None
    source = number_of(sources[0])
    if source >= VECTORS:
        return None
    if name == "mov":
        return {"effect": Effect.COPY, "first": number_of(first), "second": source}
    if name == "cmp":
        return {"effect": Effect.COMPARE, "first": number_of(first), "second": source} if len(sources) == 1 else None
    if not sources[1].startswith("#"):
        kinds = {"add": Effect.ADD_REGISTERS, "sub": Effect.SUBTRACT}
        if name not in kinds or len(sources) > 2 or register(sources[1]) is None:
            return None
        return {"effect": kinds[name], "first": number_of(first), "base": source, "index": number_of(sources[1])}
    number = constant(sources[1]) << (12 if sources[2:] == ["lsl #12"] else 0)
    if name == "and":
        low = ~number & (1 << 64) - 1
        if low & (low + 1):
            return None
        return {"effect": Effect.ALIGN, "first": number_of(first), "base": source, "offset": -1 - low}
    if number == 0:
        return {"effect": Effect.COPY, "first": number_of(first), "second": source}
    number = number if name == "add" else -number
    return {"effect": Effect.ADD, "first": number_of(first), "base": source, "offset": number}
