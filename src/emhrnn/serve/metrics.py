"""Counters for Prometheus, and how far the documents are from those of training."""

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from emhrnn.drift import Watch

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


class DriftCollector(Collector):
    """Drift of the documents that runs have classified, compared whenever `/metrics` is asked for."""

    def __init__(self, watches: Mapping[str, Watch]) -> None:
        self.watches = watches

    def collect(self) -> Iterator[GaugeMetricFamily]:
        documents = GaugeMetricFamily("emhrnn_drift_documents", "Recent documents compared.", labels=["run"])
        found = GaugeMetricFamily(
            "emhrnn_drift", "Words: divergence from training, bits. Labels: PSI.", labels=["run", "of"]
        )
        drifted = GaugeMetricFamily(
            "emhrnn_drifted", "1 where drift is above its limit and above chance.", labels=["run", "of"]
        )
        for run, watch in self.watches.items():
            documents.add_metric([run], watch.documents)
            if (report := watch.report()) is None:
                continue
            for of, value in (("words", report.words), ("labels", report.labels)):
                if value is not None:
                    found.add_metric([run, of], value)
                    drifted.add_metric([run, of], of in report.drifted)
        yield from (documents, found, drifted)
