"""Counters for Prometheus, in its text format."""

from bisect import bisect_left
from collections import Counter

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Telemetry:
    """Touched by the event loop only, so it needs no lock."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.buckets = [0] * (len(SECONDS) + 1)
        self.seconds = 0.0
        self.documents = 0

    def add(self, route: str, status: int, seconds: float) -> None:
        self.requests[route, status] += 1
        self.buckets[bisect_left(SECONDS, seconds)] += 1
        self.seconds += seconds

    def render(self, *, waiting: int, passes: int) -> str:
        lines = ["# HELP emhrnn_requests_total Requests answered.", "# TYPE emhrnn_requests_total counter"]
        lines += [
            f'emhrnn_requests_total{{route="{route}",status="{status}"}} {count}'
            for (route, status), count in sorted(self.requests.items())
        ]
        lines += ["# HELP emhrnn_request_seconds Time to answer.", "# TYPE emhrnn_request_seconds histogram"]
        total = 0
        for limit, count in zip([*map(str, SECONDS), "+Inf"], self.buckets, strict=True):
            total += count
            lines.append(f'emhrnn_request_seconds_bucket{{le="{limit}"}} {total}')
        lines += [f"emhrnn_request_seconds_sum {self.seconds:.6f}", f"emhrnn_request_seconds_count {total}"]
        for name, kind, told, value in (
            ("documents_total", "counter", "Documents classified or explained over the API.", self.documents),
            ("model_passes_total", "counter", "Passes of the model; documents share them under load.", passes),
            ("waiting", "gauge", "Requests that wait for the model.", waiting),
        ):
            lines += [f"# HELP emhrnn_{name} {told}", f"# TYPE emhrnn_{name} {kind}", f"emhrnn_{name} {value}"]
        return "\n".join(lines) + "\n"
