"""`emhrnn export --onnx`: onnxruntime gives the numbers of Python, from the file alone."""

import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import onnxruntime
import pytest

from emhrnn.api import load
from emhrnn.corpus.batch import Batch
from emhrnn.corpus.reviews import generate_reviews
from emhrnn.errors import ConfigError, ExtraError
from emhrnn.export.onnx_graph import INPUTS, export_onnx, onnx_model
from emhrnn.models.evidence import Evidence
from emhrnn.text import TextSettings, Vocabulary
from emhrnn.training.config import make_config
from emhrnn.training.run import Run
from tests.behaviour.commands import Cli
from tests.explain.browser import chromium
from tests.models.examples import CLASSES
from tests.models.test_evidence import PARTS, WORDS, make_batch, trained

CLOSE = 1e-5  # of probabilities
CASES: dict[str, dict[str, Any]] = {
    **PARTS,
    "one seen phrase": {"counts": True, "encoder_size": 0, "least_documents": 2},
    "longest": {"longest": 8, "pauses": WORDS, "sentence_weights": 2},
}
TEXTS = ["The staff was friendly. Breakfast was cold, but I would stay here again!", "Qwertz asdfgh.", "bad", "?!"]


def session_of(model: Any) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def answer(session: onnxruntime.InferenceSession, batch: Batch) -> list[np.ndarray]:
    """Logits, probabilities and effects of words."""
    return session.run(None, {name: getattr(batch, name) for name in INPUTS})


def run_of(model: Evidence, *, several: bool, temperature: float = 1.7) -> Run:
    classes = tuple(f"class {y}" for y in range(CLASSES))
    config = make_config(assignments=["model.name=evidence"])
    return Run(model, config, Vocabulary(WORDS), classes, several, TextSettings(), temperature=temperature)


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several"])
@pytest.mark.parametrize("parts", CASES)
def test_the_numbers_are_those_of_python(parts, several):
    """Of random ragged batches with unknown words; all seen phrases are in the first one."""
    rng = np.random.default_rng([len(parts), several])
    batches = [make_batch(lengths, seed, several=several) for seed, lengths in enumerate(random_lengths(rng, 5))]
    model, _ = trained(batches[0], 1, several=several, **CASES[parts])
    run = run_of(model, several=several)
    session = session_of(onnx_model(run).SerializeToString())
    for batch in batches:
        check_equal(run, session, batch)


def random_lengths(rng: np.random.Generator, batches: int) -> list[list[list[int]]]:
    """Words of the sentences of documents: often one, sometimes many."""
    return [
        [rng.choice([1, 1, 2, 3, 5, 8, 40], rng.integers(1, 5)).tolist() for _ in range(rng.integers(1, 6))]
        for _ in range(batches)
    ]


def check_equal(run: Run, session: onnxruntime.InferenceSession, batch: Batch) -> None:
    logits, probabilities, effects = answer(session, batch)
    expected, reading = run.predict(batch), run.model.read(batch)
    np.testing.assert_allclose(probabilities, expected.probabilities, atol=CLOSE)
    np.testing.assert_allclose(logits, expected.logits, atol=1e-4, rtol=1e-5)
    np.testing.assert_allclose(effects, reading.words, atol=1e-4, rtol=1e-4)
    sums = np.add.reduceat(effects, batch.word_offsets[:-1]) + reading.bias
    np.testing.assert_allclose(sums, logits, atol=1e-4, rtol=1e-5)
    assert logits.dtype == probabilities.dtype == effects.dtype == np.float32


@pytest.mark.parametrize("lengths", [[[3000]], [[1] * 400], [[2000, 1], [1, 1, 700]]], ids=str)
def test_long_sentences_and_documents(lengths):
    model, _ = trained(make_batch([[5, 6], [7]], 1), 1, pauses=WORDS, sentence_weights=3)
    run = run_of(model, several=False)
    check_equal(run, session_of(onnx_model(run).SerializeToString()), make_batch(lengths, 2))


def test_the_command(cli: Cli, run: Path, tmp_path: Path) -> None:
    file = tmp_path / "demo.onnx"
    assert "demo.onnx" in cli.ok("export", "demo", "--onnx", file).out
    again = cli.ok("export", "demo", "--onnx", file, "--web", tmp_path / "page", "--json").json
    assert again["onnx"]["bytes"] == file.stat().st_size
    assert again["web"]["phrases"] == again["onnx"]["phrases"]
    model, session = load("demo"), session_of(file)
    _, probabilities, _ = answer(session, model.run.encoder.encode(TEXTS))
    np.testing.assert_allclose(probabilities, model.predict_proba(TEXTS), atol=CLOSE)
    told = session.get_modelmeta().custom_metadata_map
    assert told["vocabulary"].split("\n") == model.run.vocabulary.words
    assert json.loads(told["emhrnn"])["classes"] == list(model.classes)
    assert "is a folder" in cli.error("export", "demo", "--onnx", tmp_path)
    assert "this run is em-hrnn" in cli.error("export", run, "--onnx", tmp_path / "other.onnx")


def test_old_versions_of_onnxruntime_find_names_and_shapes() -> None:
    """Without names of nodes 1.20 gives two one name when it joins nodes; 1.15 wants shapes of what a Scan gives."""
    graph = onnx_model(load("demo").run).graph
    bodies = [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    assert len(bodies) == 2
    names = [node.name for part in (graph, *bodies) for node in part.node]
    assert all(names)
    assert len(set(names)) == len(names)
    assert all(value.type.tensor_type.HasField("shape") for body in bodies for value in (*body.input, *body.output))


def test_what_cannot_be_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = make_batch([[3, 2], [4]], 0)
    for settings, told in (
        ({"segmentation": "words"}, "segmentation words"),
        ({"segmentation": "overlapping"}, "segmentation overlapping"),
        ({"authors": (2, 2)}, "users and products"),
    ):
        model, _ = trained(batch, 0, **settings)
        with pytest.raises(ConfigError, match=told):
            onnx_model(run_of(model, several=False))
    monkeypatch.setattr("emhrnn.extras.installed", lambda library: library != "onnx")
    with pytest.raises(ExtraError, match=r"emhrnn\[onnx\]"):
        onnx_model(load("demo").run)


def test_the_example_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has nothing of this package, and the same numbers."""
    monkeypatch.chdir(tmp_path)
    export_onnx(load("demo").run, Path("model.onnx"))
    guide = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    assert "emhrnn import" not in code
    names: dict[str, Any] = {}
    exec(compile(code, "docs/export.md", "exec"), names)
    texts = [
        *TEXTS,
        *(review.text for review in generate_reviews(20, 3)),
        "It’s 10/10!!!!! -- ‘Well-known’ U.S. café...",
    ]
    for text in texts:
        np.testing.assert_allclose(names["read"](text)[1], load("demo").predict_proba([text])[0], atol=CLOSE)


@pytest.fixture(scope="module")
def onnxruntime_web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with its two files that the page of the guide needs, from npm; skips where they cannot be had."""
    folder = tmp_path_factory.mktemp("web")
    if (npm := shutil.which("npm")) is None:
        pytest.skip("needs npm on the machine, for example: apt-get install npm")
    command = [npm, "pack", "--silent", "onnxruntime-web@1.30.0"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        pytest.skip(f"onnxruntime-web could not be had from npm: {done.stderr[-200:]}")
    with tarfile.open(next(folder.glob("*.tgz"))) as packed:
        for name in ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm"):
            (folder / name).write_bytes(packed.extractfile(f"package/dist/{name}").read())
    return folder


@contextmanager
def static_server(folder: Path) -> Iterator[str]:
    """The address of its files."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_page_of_the_guide(onnxruntime_web: Path) -> None:
    """In a real browser, from static files alone: the probabilities of Python, and effects that add up to them."""
    export_onnx(load("demo").run, onnxruntime_web / "model.onnx")
    guide = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    (page,) = re.findall(r"^```html\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    (onnxruntime_web / "index.html").write_text(page, encoding="utf-8")
    model = load("demo")
    texts = [*TEXTS, *(review.text for review in generate_reviews(5, 3)), "It’s 10/10!!!!! -- Well-known... cafés"]
    with static_server(onnxruntime_web) as address, chromium() as browser:
        opened = browser.new_page()
        opened.set_default_timeout(120_000)
        opened.goto(f"{address}/index.html")
        opened.wait_for_function("window.read && document.querySelector('#words').children.length")
        assert opened.text_content("#label").startswith(f"{model.predict([opened.input_value('#text')])[0]}: ")
        for explanation in model.explain(texts):
            given = [sentence.text for sentence in explanation.sentences]
            found = opened.evaluate("(sentences) => read(sentences)", given)
            np.testing.assert_allclose(found["probabilities"], explanation.probabilities, atol=CLOSE)
            effects = model.run.model.read(model.run.encoder.encode([explanation.text])).words
            np.testing.assert_allclose(found["effects"], effects, atol=1e-4, rtol=1e-4)
        opened.fill("#text", "Bad soup!")
        opened.wait_for_function("document.querySelector('#words').textContent === 'Bad soup ! '")
        shown = opened.eval_on_selector_all("#words span", "(words) => words.map((word) => Number(word.title))")
        label = model.classes.index(opened.text_content("#label")[0])
        effects = model.run.model.read(model.run.encoder.encode(["Bad soup!"])).words
        np.testing.assert_allclose(shown, effects[:, label], atol=0.006)
