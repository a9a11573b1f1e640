"""Builds the one extension module; everything else is in pyproject.toml."""
import os

from Cython.Build import cythonize
from setuptools import Extension, setup

# Cython's directives stand here and nowhere else.
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "auto_pickle": False,
    "embedsignature": True,
    "binding": True,
}


def c_sources():
    return sorted(os.path.join("csrc", name) for name in os.listdir("csrc") if name.endswith(".c"))


extension = Extension(
    "ftbuf._core",
    sources=["ftbuf/_core.pyx", *c_sources()],
    include_dirs=["csrc"],
    depends=[os.path.join("csrc", name) for name in os.listdir("csrc") if name.endswith(".h")],
    extra_compile_args=["-std=c11", "-O3", "-fvisibility=hidden", "-Wall", "-Wextra"],
)

setup(ext_modules=cythonize([extension], compiler_directives=DIRECTIVES, build_dir="build/cython"))
