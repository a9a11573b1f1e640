"""What is shipped: the README's commands, the sdist's contents, the metadata, and what an import costs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from corpus_data import ROOT

import ftbuf

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
README = (ROOT / "README.md").read_text()
BUILT = (".so", ".o", ".pyc", ".pyd")
DOCUMENTS = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CHANGES.md", *sorted((ROOT / "docs").glob("*.md"))]


def sh_blocks() -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", README, re.M | re.S)


# ---- README ----


def test_readme_has_one_command_to_run_and_one_to_test():
    run, test = sh_blocks()
    assert len(run.splitlines()) == len(test.splitlines()) == 1
    assert "pip install ." in run and "ftbuf report examples/" in run
    assert "pip install '.[test]'" in test and test.rstrip().endswith("pytest")
    for command in (run, test):
        for path in re.findall(r"\bexamples/\S+", command):
            assert (ROOT / path).is_file()


def test_ci_runs_the_readmes_commands():
    script = (ROOT / ".ci" / "run").read_text()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert "set -euo pipefail" in script
    for heading in re.findall(r'readme_command "([^"]+)"', script):
        assert re.search(rf"^## {re.escape(heading)}$", README, re.M)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_readme_names_every_extra():
    for extra in PROJECT["optional-dependencies"]:
        assert f"`ftbuf[{extra}]`" in README


@pytest.mark.parametrize("document", sorted((ROOT / "docs").glob("*.md")), ids=lambda p: p.name)
def test_examples_of_the_documents_run(document, tmp_path, monkeypatch):
    """Every python block, in order, in a directory that has the example recording as trace.dat."""
    blocks = re.findall(r"^```python\n(.*?)^```$", document.read_text(), re.M | re.S)
    if any(re.search(r"to_pandas|to_polars|to_arrow|pandas", block) for block in blocks):
        for package in ("pandas", "polars", "pyarrow"):
            pytest.importorskip(package)
    if any("plots" in block for block in blocks):
        pytest.importorskip("matplotlib")
    (tmp_path / "trace.dat").write_bytes((ROOT / "examples" / "sched.dat").read_bytes())
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "documents"}
    for block in blocks:
        exec(compile(block, document.name, "exec"), names)


# ---- metadata ----


def test_dependencies_are_few():
    assert sorted(re.match(r"[\w.]+", d)[0] for d in PROJECT["dependencies"]) == ["backports.zstd", "numpy"]
    assert PROJECT["requires-python"] == ">=3.11"


def test_installed_metadata_agrees():
    try:
        installed = metadata.distribution("ftbuf")
    except metadata.PackageNotFoundError:
        pytest.skip("ftbuf is used from its source tree")
    if installed.read_text("RECORD") is None or "__editable__" in installed.read_text("RECORD"):
        pytest.skip("ftbuf is used from its source tree")
    assert installed.version == ftbuf.__version__
    assert installed.metadata["License-Expression"] == "BSD-3-Clause"
    names = {str(f) for f in installed.files or ()}
    assert {"ftbuf/py.typed", "ftbuf/_core.pyi", "ftbuf/report/__init__.py"} <= names
    assert not [n for n in names if n.endswith((".c", ".pyx", ".h"))]


def test_all_packages_are_listed():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {".".join(p.parent.relative_to(ROOT).parts) for p in (ROOT / "ftbuf").rglob("__init__.py")}
    assert set(listed) == found


# ---- sdist ----


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> set[str]:
    """Names in the sdist, built by setuptools alone."""
    pytest.importorskip("setuptools", "77")
    pytest.importorskip("Cython")
    where = tmp_path_factory.mktemp("sdist")
    tree = where / "tree"  # a copy: building leaves traces
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", "build", "dist", "*.egg-info"))
    code = "import setuptools.build_meta as b, sys; print(b.build_sdist(sys.argv[1]))"
    command = [sys.executable, "-W", "ignore", "-c", code, str(where)]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with tarfile.open(next(where.glob("*.tar.gz"))) as archive:
        return {name.partition("/")[2] for name in archive.getnames() if "/" in name}


def test_sdist_is_the_whole_project(sdist):
    wanted = {"README.md", "ARCHITECTURE.md", "CHANGES.md", "LICENSE", "pyproject.toml", "setup.py", ".ci/run"}
    for folder in ("ftbuf", "csrc", "tests", "docs", "examples", "bench"):
        files = [p.relative_to(ROOT) for p in (ROOT / folder).rglob("*") if p.is_file()]
        wanted |= {p.as_posix() for p in files if p.suffix not in BUILT and "__pycache__" not in p.parts
                   and not any(part.startswith(".") for part in p.parts)}
    assert not wanted - sdist


def test_sdist_has_no_generated_code(sdist):
    assert not [n for n in sdist if Path(n).suffix in BUILT]
    assert not [n for n in sdist if n.endswith(".c") and n.startswith(("ftbuf/", "build/"))]


# ---- import ----


def imported() -> set[str]:
    """Modules that importing ftbuf brings beyond NumPy's."""
    code = "import sys, numpy; before = set(sys.modules); import ftbuf; print(*sorted(set(sys.modules) - before))"
    environment = {**os.environ, "PYTHONPATH": str(Path(ftbuf.__file__).parent.parent)}
    return set(subprocess.check_output([sys.executable, "-c", code], text=True, env=environment, cwd="/").split())


def test_importing_is_cheap():
    """What only some uses need is imported by those uses."""
    tops = {name.split(".")[0] for name in imported()}
    late = {"pandas", "polars", "pyarrow", "fsspec", "backports", "argparse", "asyncio", "concurrent", "difflib",
            "json", "html", "logging", "tempfile", "subprocess", "zlib", "ctypes"}
    assert not tops & late
    ours = {name for name in imported() if name.startswith("ftbuf.")}
    assert not [n for n in ours if n.startswith(("ftbuf.report", "ftbuf.cli", "ftbuf.analysis", "ftbuf.container.t"))]
