"""Settings: presets, files and assignments; every mistake names the key and what to write instead."""

from pathlib import Path

import pytest

from emhrnn.errors import ConfigError
from emhrnn.training.config import Config, make_config, setting_names, validated


def test_paper_preset_is_the_letter_of_the_paper() -> None:
    config = make_config("paper")
    assert config.training.optimizer == "sgd"
    assert config.training.momentum == 0.9
    assert config.training.batch_documents == 64
    assert not config.model.tune_embedding
    assert not config.model.bidirectional_words
    assert {config.model.word_size, config.model.phrase_size, config.model.sentence_size} == {50}
    assert (config.em.estep, config.em.blocks, config.em.block_length, config.em.impute) == ("local", 10, 5, "prior")


def test_later_sources_win(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("[training]\nepochs = 3\nlearning_rate = 0.5\n")
    config = make_config("paper", file, ["training.epochs=7", "em.impute=posterior", "data.lowercase=false"])
    assert config.training.epochs == 7
    assert config.training.learning_rate == 0.5
    assert config.em.impute == "posterior"
    assert config.data.lowercase is False
    assert config.training.optimizer == "sgd"


def test_a_model_has_defaults_of_its_own() -> None:
    """Over the preset, under what is given; and they do not count as given."""
    own = make_config("paper", None, ["model.name=transformer", "training.epochs=2"])
    assert own.training.learning_rate == 2e-5
    assert own.training.epochs == 2
    assert own.training.optimizer == "sgd"
    assert own.model_dump(exclude_unset=True)["training"].keys() == {"epochs", "optimizer"}
    assert make_config(assignments=["model.name=hn-att"]).training.learning_rate == 0.002
    assert validated(own.model_dump()) == own


def test_json_round_trip() -> None:
    config = make_config("paper", None, ["model.dropout=0.25"])
    assert validated(config.model_dump()) == config
    assert Config.model_validate_json(config.model_dump_json()) == config


def test_many_classes_share_fewer_buckets() -> None:
    """200,000 buckets for each of 1,000 classes would be 800 MB."""
    config = make_config()
    assert config.for_classes(250) == config
    assert config.for_classes(1000) == make_config(assignments=["model.buckets=50000"])
    assert config.for_classes(10**9).model.buckets == 1
    for assignment in ("model.ngrams=false", "model.name=fasttext"):
        other = make_config(assignments=[assignment])
        assert other.for_classes(1000) == other


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
    ],
)
def test_mistakes_name_the_key_and_the_remedy(assignment: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        make_config(assignments=[assignment])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such config file"):
        make_config(file=tmp_path / "none.toml")
    bad = tmp_path / "bad.toml"
    bad.write_text("[training\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        make_config(file=bad)
    bad.write_text("epochs = 3\n")
    with pytest.raises(ConfigError, match="stands outside a section"):
        make_config(file=bad)
    with pytest.raises(ConfigError, match="unknown preset 'best'; use one of default, paper"):
        make_config("best")


def test_setting_names_are_all_settable() -> None:
    assert "em.rate" in setting_names()
    assert len(setting_names()) == len(set(setting_names())) > 40
