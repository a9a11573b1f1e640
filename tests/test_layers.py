"""The house of ARCHITECTURE.md: imports point down, or to the left on the same floor."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from corpus_data import ROOT

PACKAGE = ROOT / "ftbuf"
OPTIONAL = frozenset({"pandas", "polars", "pyarrow", "fsspec", "dask", "backports", "matplotlib"})


def places() -> dict[str, tuple[int, int]]:
    """Module or subpackage -> (floor, place from the left), from the table in ARCHITECTURE.md."""
    table = (ROOT / "ARCHITECTURE.md").read_text().split("## The house", 1)[1].split("```")[1]
    rows = re.findall(r"^(\d+)\s+(.*?)\s*(?:\(.*\))?$", table, re.M)
    return {name.removesuffix(".pxd"): (int(floor), at)
            for floor, names in rows for at, name in enumerate(names.split())}


PLACES = places()
# ftbuf/__init__.py is the door, and opens on every floor; __main__.py is `python -m ftbuf`.
MODULES = sorted({*PACKAGE.rglob("*.py")} - {PACKAGE / "__init__.py", PACKAGE / "__main__.py"})


def dotted(path: Path) -> str:
    """Name inside the package: container/model.py -> container.model, container/__init__.py -> container."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


every_module = pytest.mark.parametrize("path", MODULES, ids=dotted)


@dataclass(frozen=True)
class Import:
    module: str  # absolute; ours begin with "ftbuf"
    name: str  # what is taken from it; "": the module itself
    for_types: bool  # under `if TYPE_CHECKING:`
    in_function: bool

    @property
    def ours(self) -> bool:
        return self.module.split(".")[0] == "ftbuf"

    @property
    def target(self) -> str:
        """The module of ours that is meant, as a name inside the package; "" is the package itself."""
        inside = self.module.split(".")[1:]
        return ".".join([*inside, self.name] if is_module([*inside, self.name]) else inside)


def is_module(parts: list[str]) -> bool:
    place = PACKAGE.joinpath(*parts)
    return bool(parts[-1]) and (place.is_dir() or any(place.with_suffix(s).exists() for s in (".py", ".pyx")))


def walk(node: ast.AST, for_types: bool = False, in_function: bool = False) -> Iterator[tuple[ast.AST, bool, bool]]:
    for child in ast.iter_child_nodes(node):
        types = for_types or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        function = in_function or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        yield child, types, function
        yield from walk(child, types, function)


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """Every import of a file, wherever it stands."""
    package = ["ftbuf", *path.relative_to(PACKAGE).parent.parts]
    out = []
    for node, *where in walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            out += [Import(alias.name, "", *where) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            out += [Import(module, alias.name, *where) for alias in node.names]
    return tuple(out)


def our_targets(path: Path) -> list[str]:
    """Modules of ours that a file imports; what only type checkers see does not count."""
    return sorted({i.target for i in imports(path) if i.ours and not i.for_types})


def place_of(name: str) -> tuple[int, int]:
    top = name.split(".")[0]
    assert top in PLACES, f"{name} has no place in the house: see ARCHITECTURE.md"
    return PLACES[top]


def test_the_table_lists_the_real_modules():
    names = {dotted(p).split(".")[0] for p in MODULES} | {p.stem for p in PACKAGE.glob("*.p[yx][xd]")} | {"csrc"}
    assert names == set(PLACES)


@every_module
def test_imports_point_down(path):
    me = dotted(path)
    for target in our_targets(path):
        if target == "":
            assert me.startswith("cli."), f"{me} imports the package's door"
        elif target.split(".")[0] != me.split(".")[0]:
            assert place_of(target) < place_of(me), f"{me} at {place_of(me)} imports {target} at {place_of(target)}"


@every_module
def test_reports_and_analyses_do_not_know_each_other(path):
    tops = {t.split(".")[0] for t in [*our_targets(path), dotted(path)]}
    assert not {"report", "analysis"} <= tops


@every_module
def test_optional_packages_are_imported_inside_functions(path):
    assert not [i for i in imports(path)
                if i.module.split(".")[0] in OPTIONAL and not i.in_function and not i.for_types]


def test_the_boundary_imports_its_declarations_and_nothing_else_of_ours():
    source = (PACKAGE / "_core.pyx").read_text()
    assert set(re.findall(r"^\s*(?:from|c?import)\s+(\.[\w.]*|ftbuf[\w.]*)", source, re.M)) == {"ftbuf._csrc"}
    assert "numpy" not in source


def test_no_circles_inside_subpackages():
    graph = {dotted(p): our_targets(p) for p in MODULES}

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join([*path, name])
        for target in graph.get(name, ()):
            if target not in done and target != name:
                visit(target, (*path, name))
        done.add(name)

    done: set[str] = set()
    for name in graph:
        visit(name, ())
