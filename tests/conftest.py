"""Fixtures shared by all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus_data import HAVE_CORPUS, Recording, recording_names, unpack


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not HAVE_CORPUS:
        skip = pytest.mark.skip(reason="the shared corpus is not beside the checkout")
        for item in items:
            if item.get_closest_marker("corpus"):
                item.add_marker(skip)


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recording]:
    """The small real recordings of tests/data, by name, unpacked once a session."""
    return {r.name: r for r in unpack(tmp_path_factory.mktemp("recordings"))}


@pytest.fixture(params=recording_names())
def recording(request: pytest.FixtureRequest, recordings: dict[str, Recording]) -> Recording:
    """Each small real recording in turn."""
    return recordings[request.param]


@pytest.fixture(scope="session")
def corpus_layout(tmp_path_factory: pytest.TempPathFactory):
    """A function: corpus case -> where it is laid out (one at a time is kept)."""
    import shutil

    root = tmp_path_factory.mktemp("corpus")

    def lay_out(case) -> Path:
        for old in root.iterdir():
            if old.name != case.name:
                shutil.rmtree(old)
        dest = root / case.name
        return dest if dest.exists() else case.lay_out(dest)

    return lay_out
