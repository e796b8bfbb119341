"""Counters for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """Of one application; `registry` holds them for `/metrics`."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter("emhrnn_requests", "Requests answered.", ["route", "status"], registry=registry)
        self.seconds = Histogram("emhrnn_request_seconds", "Time to answer.", buckets=SECONDS, registry=registry)
        self.documents = Counter(
            "emhrnn_documents", "Documents classified or explained over the API.", registry=registry
        )
        self.passes = Counter(
            "emhrnn_model_passes", "Passes of the model; documents share them under load.", registry=registry
        )
        self.waiting = Gauge("emhrnn_waiting", "Requests that wait for the model.", registry=registry)
