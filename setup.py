"""Builds the one extension module; everything else is in pyproject.toml.

FTBUF_WARNINGS=1 makes warnings errors; FTBUF_SANITIZE=1 builds with the address and undefined-behaviour sanitizers
(run Python with LD_PRELOAD="$(gcc -print-file-name=libasan.so)" then); FTBUF_NARROW=1 leaves out what is compiled for CPUs with
AVX-512, so that the code for all others runs. All are for development: a release has none.
"""
import os

from Cython.Build import cythonize
from setuptools import Extension, setup

# Cython's directives stand here and nowhere else. The checks are of Python's lists and objects, whose use is cold: what is hot
# is C pointers, and those C itself bounds.
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": True,
    "wraparound": False,
    "initializedcheck": False,
    "nonecheck": True,
    "auto_pickle": False,
    "embedsignature": True,
    "binding": True,
}
COMPILE = ["-std=c11", "-O3", "-g0", "-fvisibility=hidden", "-Wall", "-Wextra"]
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g", "-O1"]


def switched_on(name):
    return os.environ.get(name, "") not in ("", "0")


def files(ending, folder="csrc"):
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(ending))


narrow = ["-DFTB_NARROW"] if switched_on("FTBUF_NARROW") else []
sanitize = SANITIZE if switched_on("FTBUF_SANITIZE") else []
extension = Extension(
    "ftbuf._core",
    sources=["ftbuf/_core.pyx", *files(".c")],
    include_dirs=["csrc"],
    depends=[*files(".h"), *files((".pxd", ".pxi"), "ftbuf")],
    extra_compile_args=[*COMPILE, *(["-Werror"] if switched_on("FTBUF_WARNINGS") else []), *narrow, *sanitize],
    extra_link_args=sanitize[:1],
)

setup(ext_modules=cythonize([extension], compiler_directives=DIRECTIVES, build_dir="build/cython"))
