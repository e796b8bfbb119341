"""What `emhrnn tune` varies, by model, in the notation of `--vary`: low:high, low:high:log, or a list a,b,c."""

from emhrnn.models.table import MODELS
from emhrnn.training.config import Config

PAPER_GRID = {"training.learning_rate": "0.01,0.03,0.1,0.3,1.0"}  # docs/paper.md 1.8: picked on validation

GRADIENT = {
    "training.learning_rate": "0.0005:0.01:log",
    "training.batch_words": "1000,2000,4000,8000",
    "training.weight_decay": "1e-6:0.01:log",
    "training.decay": "none,linear,cosine",
    "model.dropout": "0:0.6",
}
WORDS = {"model.word_size": "25,50,100"}
SENTENCES = {**WORDS, "model.sentence_size": "25,50,100"}
ATTENTION = {**SENTENCES, "model.attention_size": "25,50,100"}

SPACES: dict[str, dict[str, str]] = {
    "em-hrnn": {
        **GRADIENT,
        **SENTENCES,
        "model.phrase_size": "25,50,100",
        "em.warmup_epochs": "0:2",
        "em.pace": "1:20:log",
        "em.rate": "0.12:0.5",
        "em.blocks": "5,10,20",
        "em.block_length": "3:6",
    },
    "evidence": {
        "training.learning_rate": "0.002:0.05:log",
        "training.batch_documents": "16,32,64",
        "training.weight_decay": "1e-6:0.01:log",
        "model.dropout": "0:0.6",
        "model.longest": "2:6",
        "model.presence": "0,0.5,1",
        "model.smoothing": "0.2:5:log",
        "model.least_documents": "2:5",
        "model.table_documents": "2:50:log",
        "model.encoder_size": "0,16,32,64",
    },
    "hn-att": {**GRADIENT, **ATTENTION},
    "hn-ave": {**GRADIENT, **SENTENCES},
    "hn-max": {**GRADIENT, **SENTENCES},
    "hm-rnn": {**GRADIENT, **WORDS, "model.layers": "2,3"},
    "mhs-rnn": {**GRADIENT, **SENTENCES},
    "mhs-rnn-att": {**GRADIENT, **ATTENTION},
    "lstm": {**GRADIENT, **WORDS},
    "cnn-word": {**GRADIENT, "model.features": "64,128,256", "model.dense_size": "256,512,1024"},
    "conv-grnn": {**GRADIENT, **SENTENCES},
    "lstm-grnn": {**GRADIENT, **SENTENCES},
    "cma": {**GRADIENT, **ATTENTION, "model.id_size": "16,32,64"},
    "basis-cust": {**GRADIENT, **WORDS, "model.id_size": "16,32,64", "model.bases": "2,4,8"},
    "transformer": {
        "training.learning_rate": "1e-5:1e-4:log",
        "training.batch_words": "1000,2000,4000",
        "training.weight_decay": "1e-4:0.1:log",
    },
    "tfidf-lr": {"model.C": "0.05:100:log", "model.max_features": "20000,50000,100000,200000"},
    "tfidf-svm": {"model.C": "0.01:10:log", "model.max_features": "20000,50000,100000,200000"},
    "nb-lr": {"model.C": "0.003:30:log", "model.max_features": "100000,300000,1000000,2000000"},
    "bag-of-means": {"model.C": "0.1:1000:log", "model.means": "500,1000,2000,5000"},
    "sswe-svm": {"model.C": "0.0001:1:log", "model.fit_epochs": "0:6"},
    "fasttext": {"model.fit_epochs": "3:30:log", "model.word_size": "10,50,100", "model.buckets": "50000,200000"},
}


def space_of(config: Config) -> dict[str, str]:
    """The space of the configured model, without what these settings leave unused."""
    space = dict(SPACES[config.model.name])
    unused = set()
    if config.training.batch_documents:
        unused.add("training.batch_words")
    if config.model.frozen:
        space = {"model.C": "0.01:100:log"}
    learned = MODELS[config.model.name].learns == "em" and config.model.segmentation == "learned"
    estep = config.em.estep if learned else "none"
    if estep == "none":
        unused |= {name for name in space if name.startswith("em.") and name != "em.rate"}
    if config.model.segmentation not in ("learned", "random"):  # the other cuts have a rate of their own
        unused.add("em.rate")
    if estep != "local":
        unused.add("em.blocks")
    if estep not in ("local", "blocks"):
        unused.add("em.block_length")
    if "em.warmup_epochs" in space:  # at least one epoch must be left for EM, at every level
        space["em.warmup_epochs"] = f"0:{max(0, min(2, config.training.epochs // config.model.levels - 1))}"
    return {name: text for name, text in space.items() if name not in unused}
