"""Compiles the kernels; everything else about the project stands in pyproject.toml.

A kernel is an ordinary module in Cython's pure-Python mode. One that cannot be compiled is left as it is
and runs interpreted: slower, with the same answers.
"""

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = (
    "walkback.intern",
    "walkback.render",
    "walkback.sframe._rows",
    "walkback.table._search",
)

extensions = [
    Extension(name, [f"src/{name.replace('.', '/')}.py"], extra_compile_args=["-O3"], optional=True) for name in KERNELS
]

directives = {
    "language_level": 3,
    "boundscheck": True,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
}
Shadow = None
setup(
    ext_modules=cythonize(extensions, build_dir="build/cython", compiler_directives=directives, show_all_warnings=False)
)
