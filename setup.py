"""Compiles the kernels; everything else about the project stands in pyproject.toml.

A kernel is an ordinary module in Cython's pure-Python mode. One that cannot be compiled is left as it is
and runs interpreted: slower, with the same answers.
"""

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, ExecError, PlatformError

KERNELS = (
    "walkback.capture.perfdata._records",
    "walkback.capture.perfdata._samples",
    "walkback.cbf._decode",
    "walkback.cbf._encode",
    "walkback.cursor",
    "walkback.dwarf._entries",
    "walkback.dwarf._instruction",
    "walkback.dwarf._others",
    "walkback.dwarf._program",
    "walkback.export._distinct",
    "walkback.intern",
    "walkback.render",
    "walkback.sframe._rows",
    "walkback.store._tree",
    "walkback.table._search",
    "walkback.table._walk",
    "walkback.unwind._agree",
    "walkback.unwind._expression",
    "walkback.unwind._frame",
    "walkback.unwind._memory",
    "walkback.unwind._tables",
    "walkback.unwind._walk",
)


class BuildWherePossible(build_ext):
    """Goes on without what the machine cannot compile."""

    def build_extensions(self) -> None:
        """Compile all; what comes after, copying and installing, sees those that could be."""
        self.not_compiled: list[Extension] = []
        super().build_extensions()
        self.extensions = [ext for ext in self.extensions if ext not in self.not_compiled]

    def build_extension(self, ext: Extension) -> None:
        """Compile one kernel, or say that it will run interpreted."""
        try:
            super().build_extension(ext)
        except (CCompilerError, ExecError, PlatformError, OSError) as error:
            self.warn(f"{ext.name} is not compiled and will run interpreted: {error}")
            self.not_compiled.append(ext)


KERNEL_EXTENSIONS = [
    Extension(name, [f"src/{name.replace('.', '/')}.py"], extra_compile_args=["-O3"]) for name in KERNELS
]
DIRECTIVES = {
    "boundscheck": True,
    "cdivision": True,
    "initializedcheck": False,
    "language_level": 3,
    "wraparound": False,
}

setup(
    cmdclass={"build_ext": BuildWherePossible},
    ext_modules=cythonize(KERNEL_EXTENSIONS, build_dir="build/cython", compiler_directives=DIRECTIVES),
)
