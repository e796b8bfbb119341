"""Settings: presets, files and assignments; every mistake names the key and what to write instead."""

import os
from pathlib import Path

import pytest

from emhrnn.errors import ConfigError, DataError
from emhrnn.models.table import MODELS
from emhrnn.training.config import (
    Config,
    check_shared,
    default_of,
    make_config,
    settings_of,
    validated,
    with_settings,
)


def test_every_setting_of_the_paper_preset() -> None:
    assert make_config("paper").model_dump() == {
        "data": {
            "language": "auto", "lowercase": True, "vocabulary": "vectors", "min_count": 2, "max_vocabulary": None,
            "max_sentence_words": None, "max_sentences": None, "validation": 0.1, "folds": 0,
        },
        "model": {
            "name": "em-hrnn", "embedding_size": 100, "tune_embedding": False, "dropout": 0.0, "word_size": 50,
            "phrase_size": 50, "sentence_size": 50, "attention_size": 50, "bidirectional_words": False, "cell": "lstm",
            "skip": False, "pauses": False, "segmentation": "learned",
        },
        "em": {
            "estep": "local", "blocks": 10, "block_length": 5, "windows": 0, "focus": False, "impute": "prior",
            "rate": 0.5, "hold_rate": False, "warmup_epochs": 0, "theta": "all",
            "pace": 1.0, "printed_q": False,
        },
        "training": {
            "epochs": 12, "batch_words": 4000, "batch_documents": 64, "optimizer": "sgd", "learning_rate": 0.1,
            "momentum": 0.9, "weight_decay": 0.0, "warmup": 0.0, "decay": "none", "average_epochs": 0.0, "clip": 5.0,
            "label_smoothing": 0.0, "class_weight": "none", "metric": "accuracy",
            "patience": 4, "calibrate": True, "seed": 0, "threads": 0,
            "checkpoint_seconds": 60.0,
        },
    }  # fmt: skip


def test_a_preset_sets_what_the_model_has() -> None:
    given = make_config("paper", assignments=["model.name=hn-att"]).model_dump(exclude_unset=True)
    assert given["model"] == {"name": "hn-att", "tune_embedding": False, "dropout": 0.0}
    assert "em" not in given
    assert given["training"]["optimizer"] == "sgd"


def test_later_sources_win(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("[training]\nepochs = 3\nlearning_rate = 0.5\n")
    config = make_config("paper", file, ["training.epochs=7", "em.impute=rate", "data.lowercase=false"])
    assert config.training.epochs == 7
    assert config.training.learning_rate == 0.5
    assert config.em.impute == "rate"
    assert config.data.lowercase is False
    assert config.training.optimizer == "sgd"


def test_a_model_has_defaults_of_its_own() -> None:
    """Over the preset, under what is given; and they do not count as given."""
    own = make_config("paper", None, ["model.name=transformer", "training.epochs=2"])
    assert own.training.learning_rate == 2e-5
    assert own.training.epochs == 2
    assert own.training.optimizer == "sgd"
    assert own.model_dump(exclude_unset=True)["training"].keys() == {"epochs", "optimizer"}
    assert make_config(assignments=["model.name=hn-att"], model="em-hrnn").training.learning_rate == 0.002
    assert validated(own.model_dump()) == own


def test_json_round_trip() -> None:
    config = make_config("paper", None, ["model.dropout=0.25"])
    assert validated(config.model_dump()) == config
    assert Config.model_validate_json(config.model_dump_json()) == config


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("training.epoch=3", "unknown setting 'training.epoch'; did you mean 'training.epochs'?"),
        ("train.epochs=3", "did you mean 'training.epochs'"),
        ("training.epochs=0", "training.epochs = 0: input should be greater than or equal to 1"),
        ("training.epochs=many", "training.epochs = 'many'"),
        ("em.estep=magic", "em.estep = 'magic': input should be 'none', 'exact'"),
        ("em.block_length=17", "em.block_length = 17: input should be less than or equal to 16"),
        ("epochs=3", "cannot read --set 'epochs=3'; write section.key=value"),
        ("training.epochs", "cannot read --set"),
        ("model.segmentation=guess", "unknown segmentation 'guess'"),
    ],
)
def test_mistakes_name_the_key_and_the_remedy(assignment: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        make_config(assignments=[assignment], model="em-hrnn")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_bad_files(tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    for content, told in (
        (None, "no such config file"),
        ("[training\n", "not valid TOML"),
        ("epochs = 3\n", "stands outside a section"),
        ("[trainign]\nepochs = 3", r"did you mean 'training\.epochs'"),
    ):
        if content is not None:
            bad.write_text(content)
        with pytest.raises(ConfigError, match=told):
            make_config(file=bad)
    with pytest.raises(ConfigError, match="cannot be read"):
        make_config(file=tmp_path)
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(DataError, match="is a pipe"):
        make_config(file=tmp_path / "pipe.toml")
    with pytest.raises(ConfigError, match="unknown preset 'best'; use one of default, paper"):
        make_config("best")


@pytest.mark.parametrize(
    ("assignments", "parts"),
    [
        (["model.name=hn-att", "model.phrase_size=3"], ("hn-att has no", "'model.phrase_size'", "em-hrnn", "mean")),
        (["model.layers=3"], ("em-hrnn has no", "hm-rnn")),
        (["model.name=hn-att", "em.blocks=3"], ("em.blocks", "by EM", "hn-att does not", "--model em-hrnn")),
        (["model.name=tfidf-lr", "model.dropout=0.1"], ("tfidf-lr has no", "model.dropout", "em-hrnn")),
        (["em.theta=all", "training.label_smoothing=0.1"], ("label_smoothing = 0.1", "em.theta = map or sample")),
        (["em.windows=3"], ("em.windows = 3 is for em.estep = blocks, not local",)),
        (["model.segmentation=overlapping"], ("unknown segmentation 'overlapping'",)),
        (["model.name=evidence", "model.counts=false", "model.tables=false", "model.encoder_size=0"], ("switch one",)),
    ],
)
def test_settings_that_do_not_go_together(assignments: list[str], parts: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as error:
        make_config(assignments=assignments, model="em-hrnn")
    assert all(part in str(error.value) for part in parts), error.value


def test_settings_for_several_models_count_where_they_exist(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("[model]\nphrase_size = 7\n[em]\nblocks = 3\n")
    shared = ["model.word_size=9", "training.epochs=2"]
    check_shared(["hn-att", "em-hrnn"], file, shared)
    em = make_config(file=file, assignments=["model.name=em-hrnn"], shared=shared)
    assert (em.model.model_dump()["phrase_size"], em.em.blocks) == (7, 3)
    other = make_config(file=file, assignments=["model.name=hn-att", "model.word_size=8"], shared=shared)
    assert (other.model.model_dump()["word_size"], other.training.epochs) == (8, 2)
    for models in (["hn-att", "lstm"], ["tfidf-lr"]):
        with pytest.raises(ConfigError, match=r"has no setting 'model.phrase_size', which is for em-hrnn"):
            check_shared(models, file, shared)
    with pytest.raises(ConfigError, match=r"has no setting 'model.layers'"):
        make_config(assignments=["model.name=hn-att", "model.layers=2"], shared=[])


@pytest.mark.parametrize("name", MODELS)
def test_every_setting_of_every_model_can_be_set_to_its_default(name: str) -> None:
    usual = make_config(assignments=[f"model.name={name}"], model="em-hrnn")
    values = {place: default_of(name, place) for place in settings_of(name) if place != "model.name"}
    assert make_config(settings={"model.name": name, **values}) == usual
    assert all(field.description for field in settings_of(name).values())
    written = usual.model_dump()
    assert ("em" in written) == (MODELS[name].learns == "em")
    assert validated(written) == usual


def test_read_and_changed_settings() -> None:
    fitted = make_config(assignments=["model.name=tfidf-lr", "training.epochs=3"], model="em-hrnn")
    assert "epochs" not in fitted.read_settings()["training"]
    assert fitted.changed_settings() == {}
    assert make_config(assignments=["training.epochs=4", "model.skip=true"], model="em-hrnn").changed_settings() == {
        "training.epochs": 4
    }
    own = ["model.name=cnn-word", "training.learning_rate=0.001"]
    assert make_config(assignments=own, model="em-hrnn").changed_settings() == {}


def test_with_settings() -> None:
    config = with_settings(make_config("paper"), {"training.epochs": 3})
    assert (config.training.epochs, config.training.optimizer) == (3, "sgd")
    with pytest.raises(ConfigError, match=r"write section.key"):
        with_settings(config, {"epochs": 3})


@pytest.mark.parametrize("value", ["[" * 3000 + "]" * 3000, "9" * 5000], ids=["nested", "digits"])
def test_a_value_that_no_parser_takes_is_no_internal_error(value: str, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(f"[training]\nepochs = {value}\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        make_config(file=tmp_path / "c.toml")
    with pytest.raises(ConfigError, match=r"training\.epochs"):
        make_config(assignments=[f"training.epochs={value}"])


@pytest.mark.parametrize("name", ["training.epochs", "model.dropout", "model.name"])
@pytest.mark.parametrize(
    "value", ["0x" + "f" * 5000, "[{a = 0x" + "f" * 5000 + "}]", str(2**63)], ids=["hex", "in", "65"]
)
def test_a_number_that_no_machine_has(name: str, value: str) -> None:
    """Python reads it, but cannot write it in decimal figures."""
    with pytest.raises(ConfigError, match=name):
        make_config(assignments=[f"{name}={value}"])
