"""Compiles the kernels; everything else about the project stands in pyproject.toml.

A kernel is an ordinary module in Cython's pure-Python mode. One that cannot be compiled is left as it is
and runs interpreted: slower, with the same answers.
"""

import ast
import operator
import os
import re
from pathlib import Path

import Cython
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, ExecError, PlatformError

KERNELS = (
    "walkback.capture.perfdata._records",
    "walkback.capture.perfdata._samples",
    "walkback.cbf._decode",
    "walkback.cbf._encode",
    "walkback.code._instruction",
    "walkback.code._listing",
    "walkback.code.aarch64._atomics",
    "walkback.code.aarch64._branches",
    "walkback.code.aarch64._decode",
    "walkback.code.aarch64._immediates",
    "walkback.code.aarch64._memory",
    "walkback.code.aarch64._registers",
    "walkback.code.aarch64._vectors",
    "walkback.code.amd64._decode",
    "walkback.code.s390x._arithmetic",
    "walkback.code.s390x._branches",
    "walkback.code.s390x._decode",
    "walkback.code.s390x._memory",
    "walkback.base.cursor",
    "walkback.debuginfo._entries",
    "walkback.debuginfo._forms",
    "walkback.debuginfo._lines",
    "walkback.debuginfo._unit",
    "walkback.dwarf._entries",
    "walkback.dwarf._instruction",
    "walkback.dwarf._landings",
    "walkback.dwarf._others",
    "walkback.dwarf._program",
    "walkback.gopclntab._values",
    "walkback.packages._lz4",
    "walkback.proof._along",
    "walkback.proof._blocks",
    "walkback.proof._claims",
    "walkback.proof._code",
    "walkback.proof._edges",
    "walkback.proof._effects",
    "walkback.proof._found",
    "walkback.proof._labels",
    "walkback.proof._leaving",
    "walkback.proof._registers",
    "walkback.proof._rows",
    "walkback.proof._scan",
    "walkback.proof._starts",
    "walkback.proof._state",
    "walkback.proof._tally",
    "walkback.proof._unit",
    "walkback.proof._walk",
    "walkback.proof._ways",
    "walkback.runtimes.python._frames",
    "walkback.stacks._distinct",
    "walkback.base.growing",
    "walkback.base.intern",
    "walkback.base.render",
    "walkback.sframe._rows",
    "walkback.store._folded",
    "walkback.store._tree",
    "walkback.table._search",
    "walkback.table._walk",
    "walkback.walking._agree",
    "walkback.walking._expression",
    "walkback.walking._frame",
    "walkback.walking._memory",
    "walkback.walking._tables",
    "walkback.walking._walk",
)

FACES = (
    "walkback.base.leb128",
    "walkback.base.loading",
    "walkback.base.mixing",
    "walkback.base.searching",
    "walkback.capture.perfdata.layout",
    "walkback.cbf.layout",
    "walkback.code.aarch64.fields",
    "walkback.code.amd64.fields",
    "walkback.code.amd64.onebyte",
    "walkback.code.amd64.opcodes",
    "walkback.code.amd64.operands",
    "walkback.code.amd64.prefixes",
    "walkback.code.amd64.promoted",
    "walkback.code.amd64.registers",
    "walkback.code.amd64.twobytes",
    "walkback.code.amd64.writes",
    "walkback.code.decoding",
    "walkback.code.effects",
    "walkback.code.filling",
    "walkback.code.flags",
    "walkback.code.machines",
    "walkback.code.s390x.fields",
    "walkback.code.s390x.kinds",
    "walkback.debuginfo.layout",
    "walkback.debuginfo.textnumbers",
    "walkback.debuginfo.values",
    "walkback.dwarf.actions",
    "walkback.dwarf.layout",
    "walkback.dwarf.rulewords",
    "walkback.proof.brief",
    "walkback.proof.packed",
    "walkback.proof.shown",
    "walkback.proof.stored",
    "walkback.proof.values",
    "walkback.sframe.layout",
    "walkback.sframe.section",
    "walkback.stacks.stacks",
    "walkback.walking.abi",
    "walkback.walking.samples",
)
"""Modules whose numbers, enumerations and inline functions kernels compile in; a face tells C what they are."""

SHARED = "walkback._memoryviews"
"""What Cython generates for the views of every kernel, compiled once instead of in each."""


class BuildWherePossible(build_ext):
    """Compiles what the machine can compile, on all processors, and goes on without the rest."""

    def finalize_options(self) -> None:
        """Use all processors unless told otherwise."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self) -> None:
        """Compile all; what comes after, copying and installing, sees those that could be."""
        self.not_compiled: list[Extension] = []
        super().build_extensions()
        if any(ext.name == SHARED for ext in self.not_compiled):  # no kernel can be imported without it
            self.not_compiled = self.extensions
        self.extensions = [ext for ext in self.extensions if ext not in self.not_compiled]

    def build_extension(self, ext: Extension) -> None:
        """Compile one kernel, or say that it will run interpreted."""
        try:
            super().build_extension(ext)
        except (CCompilerError, ExecError, PlatformError, OSError) as error:
            self.warn(f"{ext.name} is not compiled and will run interpreted: {error}")
            self.not_compiled.append(ext)


def extension(name: str, suffix: str = "py") -> Extension:
    """Say how a kernel is compiled.

    The debug information of the generated C would take five times as much room as its code. WALKBACK_CFLAGS replaces
    these options.
    """
    options = os.environ.get("WALKBACK_CFLAGS", "-O3 -g0").split()
    return Extension(name, [f"src/{name.replace('.', '/')}.{suffix}"], extra_compile_args=options)


OPERATORS = {
    ast.Add: operator.add,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.Invert: operator.invert,
    ast.LShift: operator.lshift,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.RShift: operator.rshift,
    ast.Sub: operator.sub,
    ast.USub: operator.neg,
}


def whole_number(node: ast.expr | None, known: dict[str, int]) -> int | None:
    """The value of an expression of whole numbers and names of such; None of any other."""
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            return known.get(name)
        case ast.UnaryOp(op=sign, operand=one) if type(sign) in OPERATORS:
            operands = [whole_number(one, known)]
        case ast.BinOp(left=one, op=sign, right=other) if type(sign) in OPERATORS:
            operands = [whole_number(one, known), whole_number(other, known)]
        case _:
            return None
    return None if None in operands else OPERATORS[type(sign)](*operands)


def numbers(body: list[ast.stmt]) -> dict[str, int]:
    """The whole numbers that statements name."""
    found: dict[str, int] = {}
    for node in body:
        name = getattr(node, "targets", [getattr(node, "target", None)])[0]
        number = whole_number(getattr(node, "value", None), found)
        if isinstance(name, ast.Name) and number is not None:
            found[name.id] = number
    return found


def enumeration(title: str, members: dict[str, int]) -> str:
    """Numbers as C has them, those that fit into an int."""
    lines = [f"    {key} = {value}\n" for key, value in members.items() if -(2**31) <= value < 2**31]
    return f"cdef enum{title}:\n{''.join(lines)}" if lines else ""


def imported_numbers(body: list[ast.stmt]) -> dict[str, int]:
    """The whole numbers that statements import from modules of this package."""
    found: dict[str, int] = {}
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("walkback."):
            there = numbers(parsed(node.module))
            found.update({alias.name: there[alias.name] for alias in node.names if alias.name in there})
    return found


def cimports(body: list[ast.stmt]) -> str:
    """What statements import from kernels and faces; numbers that do not fit into an int of C are not in faces."""
    found = ""
    for node in body:
        if isinstance(node, ast.Import):
            found += "".join(f"cimport {one.name} as {one.asname}\n" for one in node.names if one.name in KERNELS)
        if isinstance(node, ast.ImportFrom) and node.module in KERNELS + FACES:
            there = imported_numbers([node])
            names = [alias.name for alias in node.names if there.get(alias.name, 0) < 2**31]
            found += f"from {node.module} cimport {', '.join(names)}\n" if names else ""
    return found


def is_inline(node: ast.stmt) -> bool:
    """Whether this is a function that is compiled into whoever calls it."""
    return isinstance(node, ast.FunctionDef) and "cython.inline" in map(ast.unparse, node.decorator_list)


def inline_function(function: ast.FunctionDef, known: dict[str, int]) -> str:
    """Such a function as C has it; numbers that do not fit into an int of C stand there themselves."""
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and known.get(node.id, 0) >= 2**31:
            node.id = f"{known[node.id]}ULL"
    arguments = ", ".join(f"{c_type(one.annotation)} {one.arg}" for one in function.args.args)
    body = "".join(f"    {line}\n" for node in function.body for line in ast.unparse(node).splitlines())
    return f"cdef inline {c_type(function.returns)} {function.name}({arguments}) noexcept nogil:\n{body}"


def c_type(annotation: ast.expr) -> str:
    """A type as the face says it."""
    constant = re.sub(r"cython\.const\[([\w.]+)\]", r"const \1", ast.unparse(annotation))
    constant = re.sub(r"^cython\.pointer\((.*)\)$", r"\1 *", constant)
    return re.sub(r"^tuple\[(.*)\]$", r"(\1)", constant)


def parsed(module: str) -> list[ast.stmt]:
    """The statements of a module."""
    return ast.parse(Path("src", f"{module.replace('.', '/')}.py").read_text()).body


def write_face(module: str) -> None:
    """Write what C has to know of a module, if that is not there yet."""
    body = parsed(module)
    known = numbers(body)
    text = enumeration("", known)
    for node in body:
        bases = [ast.unparse(base) for base in node.bases] if isinstance(node, ast.ClassDef) else []
        if bases == ["Fault"]:  # its members are a number and words
            for member in node.body:
                if isinstance(member, ast.Assign) and isinstance(member.value, ast.Tuple):
                    member.value = member.value.elts[0]
        if bases in (["IntEnum"], ["Fault"]):
            text += enumeration(f" {node.name}", numbers(node.body))
    if functions := list(filter(is_inline, body)):
        known |= imported_numbers(body)
        text = "cimport cython\n" + cimports(body) + text + "".join(inline_function(one, known) for one in functions)
    face = Path("build", "faces", f"{module.replace('.', '/')}.pxd")
    if not face.exists() or face.read_text() != text:
        face.parent.mkdir(parents=True, exist_ok=True)
        face.write_text(text)


DIRECTIVES = {
    "boundscheck": True,
    "cdivision": True,
    "freethreading_compatible": True,  # kernels have no state of their own
    "initializedcheck": False,
    "language_level": 3,
    "wraparound": False,
}

for module in FACES:
    write_face(module)

setup(
    cmdclass={"build_ext": BuildWherePossible},
    ext_modules=cythonize(
        [extension(SHARED, "c"), *map(extension, KERNELS)],
        build_dir=f"build/cython-{Cython.__version__}",  # one version's C does not fit another's
        compiler_directives=DIRECTIVES,
        include_path=["build/faces", "src"],  # faces import from faces and from kernels
        nthreads=os.cpu_count() or 1,
        shared_utility_qualified_name=SHARED,
    ),
)
