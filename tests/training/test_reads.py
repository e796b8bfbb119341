"""Settings that a model does not read are nothing to it, and nobody is told of them."""

from emhrnn.training.config import make_config
from emhrnn.training.reads import changed_settings, read_settings


def test_each_kind_of_model_reads_its_own() -> None:
    em, network, fitted = (
        read_settings(make_config(assignments=[f"model.name={name}"])) for name in ("em-hrnn", "cma", "tfidf-lr")
    )
    assert em.keys() == {"data", "model", "em", "training"}
    assert "id_count" not in em["model"]
    assert network.keys() == {"data", "model", "training"}
    assert "id_count" in network["model"]
    assert "epochs" in network["training"]
    assert "epochs" not in fitted["training"]


def test_changed_are_those_it_reads_that_are_not_its_own_defaults() -> None:
    given = ["model.id_count=1", "training.epochs=4", "model.layers=2"]
    assert changed_settings(make_config(assignments=given)) == {"training.epochs": 4}
    own = ["model.name=cnn-word", "training.learning_rate=0.001", "em.estep=blocks"]
    assert changed_settings(make_config(assignments=own)) == {}
