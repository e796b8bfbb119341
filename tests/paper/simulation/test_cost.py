"""What is measured, not how long it takes."""

from emhrnn.paper.simulation import cost


def test_growth_with_the_document_stops_for_exact_at_its_limit():
    methods = {words: {c.method for c in cost.length_costs(words, 1, 1)} for words in (10, 40)}
    assert "exact" in methods[10]
    assert "exact" not in methods[40]
    assert {"window-5", "local", "exact by full passes"} <= methods[40]


def test_passes_are_counted():
    windows, local, passes = cost.block_costs(3, 1, 1, words=10)
    assert (windows.method, local.method) == ("windows", "local")
    assert passes.counted
    assert passes.seconds > 0


def test_exact_is_compared_with_and_without_gradients(monkeypatch):
    monkeypatch.setattr(cost, "_seconds", lambda call: 3.0)  # the passes themselves are compared elsewhere
    speed = cost.exact_speed(2, 1)
    assert speed["full_passes_e_step"] == 1.5  # per document
    assert speed["full_passes_epoch"] == 3.0  # with the M-step
    assert speed["e_step_ratio"] == speed["epoch_ratio"] == speed["gradient_ratio"] == 1
