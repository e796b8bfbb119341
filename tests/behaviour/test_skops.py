"""A fitted DocumentClassifier goes through skops, which runs no code of the file: nothing but our own classes is
asked to be trusted."""

import numpy as np
import pytest

from tests.behaviour.commands import BAD, GOOD, rows

skops = pytest.importorskip("skops.io", reason="needs skops")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", ["evidence", "tfidf-lr"])
def test_a_classifier_survives_skops(model: str) -> None:
    from emhrnn import DocumentClassifier

    texts, labels = (list(column) for column in zip(*rows(40), strict=True))
    fitted = DocumentClassifier(model=model, random_state=0).fit(texts, labels)
    data = skops.dumps(fitted)
    untrusted = skops.get_untrusted_types(data=data)
    assert "emhrnn.estimator.DocumentClassifier" in untrusted
    assert all(kind.startswith("emhrnn.") for kind in untrusted), untrusted
    again = skops.loads(data, trusted=untrusted)
    assert again.predict([GOOD, BAD]).tolist() == ["good", "bad"]
    np.testing.assert_array_equal(again.predict_proba([GOOD, BAD]), fitted.predict_proba([GOOD, BAD]))
