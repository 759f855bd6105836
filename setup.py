"""Compiles the kernels; everything else about the project stands in pyproject.toml.

A kernel is an ordinary module in Cython's pure-Python mode. One that cannot be compiled is left as it is
and runs interpreted: slower, with the same answers.
"""

import ast
import operator
import os
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
    "walkback.base.cursor",
    "walkback.dwarf._entries",
    "walkback.dwarf._instruction",
    "walkback.dwarf._others",
    "walkback.dwarf._program",
    "walkback.stacks._distinct",
    "walkback.base.intern",
    "walkback.base.render",
    "walkback.sframe._rows",
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
    "walkback.capture.perfdata.layout",
    "walkback.cbf.layout",
    "walkback.dwarf.actions",
    "walkback.dwarf.layout",
    "walkback.dwarf.rulewords",
    "walkback.sframe.layout",
    "walkback.sframe.section",
    "walkback.stacks.stacks",
    "walkback.walking.abi",
    "walkback.walking.samples",
)
"""Modules whose numbers and enumerations kernels compile in; a face tells C what they are."""

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
    """Say how a kernel is compiled."""
    return Extension(name, [f"src/{name.replace('.', '/')}.{suffix}"], extra_compile_args=["-O3"])


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
    """The whole numbers that statements name and that fit into an int of C."""
    found: dict[str, int] = {}
    for node in body:
        name = getattr(node, "targets", [getattr(node, "target", None)])[0]
        number = whole_number(getattr(node, "value", None), found)
        if isinstance(name, ast.Name) and number is not None and -(2**31) <= number < 2**31:
            found[name.id] = number
    return found


def write_face(module: str) -> None:
    """Write what C has to know of a module, if that is not there yet."""
    name = module.replace(".", "/")
    body = ast.parse(Path("src", f"{name}.py").read_text()).body
    parts = {"": numbers(body)}
    for node in body:
        bases = [ast.unparse(base) for base in node.bases] if isinstance(node, ast.ClassDef) else []
        if bases == ["Fault"]:  # its members are a number and words
            for member in node.body:
                if isinstance(member, ast.Assign) and isinstance(member.value, ast.Tuple):
                    member.value = member.value.elts[0]
        if bases in (["IntEnum"], ["Fault"]):
            parts[f" {node.name}"] = numbers(node.body)
    text = ""
    for enum, members in parts.items():
        if members:
            text += f"cdef enum{enum}:\n" + "".join(f"    {key} = {value}\n" for key, value in members.items())
    face = Path("build", "faces", f"{name}.pxd")
    if not face.exists() or face.read_text() != text:
        face.parent.mkdir(parents=True, exist_ok=True)
        face.write_text(text)


DIRECTIVES = {
    "boundscheck": True,
    "cdivision": True,
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
        include_path=["build/faces"],
        nthreads=os.cpu_count() or 1,
        shared_utility_qualified_name=SHARED,
    ),
)
