"""What an explanation costs beside a plain prediction, from text, on one core.

    python -m benchmarks.explain [--quick] [--json] [--run RUN --data FILE] [--evidence RUN --data FILE]

Documents of about 230 words from the embedded review corpus and a model of the default sizes that has learned nothing;
or a run and texts of your own. Ratios, each within one run:

    batch              explain(texts) / predict_proba(texts), 32 texts
    batch_read         the same, and every sentence, phrase and word of every explanation is looked at: the tree of them
                       is built when it is asked for
    single             explain([text]) / predict_proba([text]): effects are estimated
    exact              explain(text) / predict_proba([text]): each phrase and each sentence is left out
    model_batch        the model alone, from word ids: with first-order effects / without
    em_hrnn_phrases    every phrase and every sentence really left out / predict, from word ids, 1 text
    em_hrnn_words      every word left out / the same
    hn_att_sentences, hn_att_words   likewise
    evidence_phrases, evidence_words   likewise, for the run of --evidence on its median text
    ..._from_text      these, against a prediction from text
"""

from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from tests.oracles.text import count_words

from benchmarks.timing import Times, fix_threads, interleave, options, report
from emhrnn.api import Model, load
from emhrnn.corpus import TextSettings
from emhrnn.corpus.readers.source import Source
from emhrnn.corpus.reviews import generate_reviews
from emhrnn.explain.explainer import findings
from emhrnn.paper.explanations.networks import gradient_effects, removal_effects
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.text import Vocabulary
from emhrnn.training.config import make_config
from emhrnn.training.run import new_run

TEXTS = 32


def made_up(name: str = "em-hrnn") -> tuple[Model, list[str]]:
    reviews = [review.text for review in generate_reviews(4 * TEXTS, seed=0)]
    texts = [" ".join(reviews[4 * i : 4 * i + 4]) for i in range(TEXTS)]
    vocabulary = Vocabulary.from_counts(count_words(reviews))
    table = torch.randn(len(vocabulary), 100, generator=torch.Generator().manual_seed(0))
    run = new_run(make_config(model=name), vocabulary, ("bad", "good"), table, multi_label=False, text=TextSettings())
    run.model.eval()
    return Model(run), texts


def given(run: Path, data: Path) -> tuple[Model, list[str]]:
    return load(run), [record.text for record in islice(Source(data), TEXTS)]


def measure(model: Model, texts: list[str], rounds: int) -> Times:
    network = model.run.model
    assert isinstance(network, EMHRNN)
    batch = model.run.encoder.encode(texts)
    with torch.no_grad():
        z = network.segment(batch, network.words(batch))
    one = [texts[int(np.argsort([len(text) for text in texts])[len(texts) // 2])]]  # of middling length

    def with_effects() -> None:
        gradient_effects(network, batch, z)

    @torch.no_grad()
    def without_effects() -> None:
        network.encode(batch, network.words(batch), z)

    return interleave(
        {
            "predict, 32 texts": lambda: model.predict_proba(texts),
            "explain, 32 texts": lambda: model.explain(texts),
            "explain and read, 32 texts": lambda: [explanation.sentences for explanation in model.explain(texts)],
            "predict, 1 text": lambda: model.predict_proba(one),
            "explain, 1 text": lambda: model.explain(one),
            "explain exactly, 1 text": lambda: model.explain(one[0]),
            "model, 32 documents": without_effects,
            "model with effects, 32 documents": with_effects,
        },
        rounds=rounds,
    )


def measure_removal(models: dict[str, tuple[Model, list[str]]], rounds: int) -> Times:
    """From word ids: a prediction, and the same document without each of its parts, for each model."""
    work = dict[str, Callable[[], object]]()
    for name, (model, texts) in models.items():
        run = model.run
        one = [texts[int(np.argsort([len(text) for text in texts])[len(texts) // 2])]]
        batch = run.encoder.encode(one)
        found = findings(run, batch)
        assert found.z is not None
        chosen, z = found.logits.argmax(axis=1), found.z
        work[f"{name}, prediction"] = partial(run.model.infer, batch)
        work[f"{name}, prediction from text"] = partial(model.predict_proba, one)
        work[f"{name}, parts"] = partial(removal_effects, run, batch, z, ("phrase", "sentence"), chosen, limited=False)
        work[f"{name}, words"] = partial(removal_effects, run, batch, z, ("word",), chosen, limited=False)
    return interleave(work, rounds=rounds)


def main() -> None:
    parser = options(__doc__, quick="fewer rounds, under 20 seconds")
    parser.add_argument("--run", type=Path, help="a run of em-hrnn")
    parser.add_argument("--evidence", type=Path, help="a run of evidence")
    parser.add_argument("--data", type=Path, help="texts for these runs")
    arguments = parser.parse_args()
    if (arguments.run is arguments.evidence is None) != (arguments.data is None):
        parser.error("give --data with --run or --evidence, and only with them")
    fix_threads(1)
    model, texts = made_up() if arguments.run is None else given(arguments.run, arguments.data)
    times = measure(model, texts, rounds=15 if arguments.quick else 60)
    times.show()
    figures = {
        "batch": times.ratio("explain, 32 texts", "predict, 32 texts"),
        "batch_read": times.ratio("explain and read, 32 texts", "predict, 32 texts"),
        "single": times.ratio("explain, 1 text", "predict, 1 text"),
        "exact": times.ratio("explain exactly, 1 text", "predict, 1 text"),
        "model_batch": times.ratio("model with effects, 32 documents", "model, 32 documents"),
    }
    models = {"em-hrnn": (model, texts), "hn-att": (made_up("hn-att")[0], texts)}
    if arguments.evidence is not None:
        models["evidence"] = given(arguments.evidence, arguments.data)
    removal = measure_removal(models, rounds=10 if arguments.quick else 40)
    removal.show()
    for name in models:
        key, parts = name.replace("-", "_"), "sentences" if name == "hn-att" else "phrases"
        for against, suffix in (("prediction", ""), ("prediction from text", "_from_text")):
            figures[f"{key}_{parts}{suffix}"] = removal.ratio(f"{name}, parts", f"{name}, {against}")
            figures[f"{key}_words{suffix}"] = removal.ratio(f"{name}, words", f"{name}, {against}")
    report(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
