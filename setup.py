"""Compiles the kernels; everything else about the project stands in pyproject.toml.

A kernel is an ordinary module in Cython's pure-Python mode. One that cannot be compiled is left as it is
and runs interpreted: slower, with the same answers.
"""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, ExecError, PlatformError

KERNELS = (
    "walkback.intern",
    "walkback.render",
    "walkback.sframe._rows",
    "walkback.table._search",
)


class BuildWherePossible(build_ext):
    """Goes on without what the machine cannot compile."""

    def build_extension(self, ext: Extension) -> None:
        """Compile one kernel, or say that it will run interpreted."""
        try:
            super().build_extension(ext)
        except (CCompilerError, ExecError, PlatformError, OSError) as error:
            self.warn(f"{ext.name} is not compiled and will run interpreted: {error}")

    def copy_extensions_to_source(self) -> None:
        """For an editable install: only what was compiled."""
        self.extensions = [ext for ext in self.extensions if self._compiled(ext)]
        super().copy_extensions_to_source()

    def get_outputs(self) -> list[str]:
        """Only what was compiled is installed."""
        return [self.get_ext_fullpath(ext.name) for ext in self.extensions if self._compiled(ext)]

    def _compiled(self, ext: Extension) -> bool:
        return Path(self.get_ext_fullpath(ext.name)).exists()


extensions = [Extension(name, [f"src/{name.replace('.', '/')}.py"], extra_compile_args=["-O3"]) for name in KERNELS]
directives = {
    "boundscheck": True,
    "cdivision": True,
    "initializedcheck": False,
    "language_level": 3,
    "wraparound": False,
}

setup(
    cmdclass={"build_ext": BuildWherePossible},
    ext_modules=cythonize(extensions, build_dir="build/cython", compiler_directives=directives),
)
