"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from corpus_data import HAVE_CORPUS, Recording, recording_names, unpack
from hypothesis import HealthCheck, settings

slow = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture)
settings.register_profile("usual", deadline=None, suppress_health_check=slow)
settings.register_profile("deep", max_examples=3000, deadline=None, suppress_health_check=slow)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not HAVE_CORPUS:
        skip = pytest.mark.skip(reason="the shared corpus is not beside the checkout")
        for item in items:
            if item.get_closest_marker("corpus"):
                item.add_marker(skip)
    # tests of one corpus case follow one another: it is laid out once
    places = [i for i, item in enumerate(items) if item.get_closest_marker("corpus") and _case(item)]
    by_case = sorted((items[i] for i in places), key=lambda item: (item.path.name, _case(item)))
    for place, item in zip(places, by_case, strict=True):
        items[place] = item


def _case(item: pytest.Item) -> str:
    case = getattr(item, "callspec", None) and item.callspec.params.get("case")
    return getattr(case, "name", "")


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
