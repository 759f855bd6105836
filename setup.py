"""Compiles the kernels; everything else about the project stands in pyproject.toml.

A kernel is an ordinary module in Cython's pure-Python mode. One that cannot be compiled is left as it is
and runs interpreted: slower, with the same answers.
"""

import os

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


DIRECTIVES = {
    "boundscheck": True,
    "cdivision": True,
    "initializedcheck": False,
    "language_level": 3,
    "wraparound": False,
}

setup(
    cmdclass={"build_ext": BuildWherePossible},
    ext_modules=cythonize(
        [extension(SHARED, "c"), *map(extension, KERNELS)],
        build_dir="build/cython",
        compiler_directives=DIRECTIVES,
        nthreads=os.cpu_count() or 1,
        shared_utility_qualified_name=SHARED,
    ),
)
