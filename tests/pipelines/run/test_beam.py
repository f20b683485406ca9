"""What engines report, and what becomes of it."""

from types import SimpleNamespace

from apache_beam.metrics.cells import DistributionData, DistributionResult
from apache_beam.metrics.execution import MetricKey, MetricResult
from apache_beam.metrics.metricbase import MetricName

from pipelines.progress import Monitor
from pipelines.run.beam import _note_workers


def test_engines_that_count_attempts_alone() -> None:
    """Spark's runner has attempted values and no committed ones; some have neither."""

    def found(namespace: str, name: str, number: int | None) -> MetricResult:
        data = (
            None if number is None else DistributionResult(DistributionData(number, 1, 0, number))
        )
        return MetricResult(MetricKey("step", MetricName(namespace, name)), None, data)

    distributions = [found("milliseconds", "embed", 2000), found("memory", "peak bytes", 7)]
    distributions.append(found("milliseconds", "search", None))
    metrics = SimpleNamespace(query=lambda: {"distributions": distributions})
    monitor = Monitor()
    _note_workers(monitor, SimpleNamespace(metrics=lambda: metrics))  # type: ignore[arg-type]
    assert monitor.peak_bytes == 7
    assert dict(monitor.seconds) == {"embed": 2.0}
