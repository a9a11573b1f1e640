"""Reports of real recordings against the kernel's own texts."""

from __future__ import annotations

import pytest
from corpus_data import corpus_cases
from report_helpers import kernel_text, lines_without_banner

WHOLE = {  # texts whose every line the layouts alone decide
    "armhf-function": ("trace.txt", "trace.raw.txt"),
    "mips32be-graph": ("trace.txt", "trace.raw.txt"),
    "h618-rawmarker": ("trace.txt", "trace.raw.txt"),
    "s390x-gaps": ("trace.txt",),
    "mips32be-subbuf-64k": ("trace.txt",),
    "arm64-16k-subbuf-64k": ("trace.txt",),
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in WHOLE.items() for text in texts])
def test_whole_texts(recordings, name, text):
    recording = recordings[name]
    options = ["raw"] if text == "trace.raw.txt" else []
    got = kernel_text(recording.path, *options)
    want = recording.expected(text)
    assert lines_without_banner(got) == lines_without_banner(want)
    assert [x for x in got.splitlines() if x.startswith("#")] == [x for x in want.splitlines() if x.startswith("#")]


def test_a_snapshot_is_another_buffer(recordings):
    recording = recordings["k612-snapshot"]
    texts = {name: kernel_text(recording.path, buffer=name).splitlines() for name in ("main", "snapshot")}
    for name, text in (("main", "trace.txt"), ("snapshot", "snapshot.txt")):
        assert len(texts[name]) == len(recording.expected(text).splitlines())
    assert texts["main"] != texts["snapshot"]


GRAPHS = [case for case in corpus_cases() if case.info["tracer"] == "function_graph" and not case.is_file]
GRAPH_OPTIONS = {
    "trace.txt": [],
    "trace.nodur.txt": ["nofuncgraph-duration"],
    "trace.tail.txt": ["funcgraph-tail"],
    "trace.abstime.txt": ["funcgraph-abstime"],
    "trace.retval.txt": ["funcgraph-retval"],
}


@pytest.mark.corpus
@pytest.mark.parametrize("case", [c for c in GRAPHS if "events" not in c.name], ids=lambda c: c.name)
def test_graphs_of_the_corpus(case, corpus_layout):
    where = corpus_layout(case)
    for name, text in case.texts().items():
        if name in GRAPH_OPTIONS and name != "trace.abstime.txt":
            assert lines_without_banner(kernel_text(where, *GRAPH_OPTIONS[name])) == lines_without_banner(text), name
