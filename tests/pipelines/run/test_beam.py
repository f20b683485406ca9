"""What engines report, and what becomes of it."""

from types import SimpleNamespace

import grpc
import pytest
from apache_beam.metrics.cells import DistributionData, DistributionResult
from apache_beam.metrics.execution import MetricKey, MetricResult
from apache_beam.metrics.metricbase import MetricName
from apache_beam.options.pipeline_options import PipelineOptions

from pipelines.progress import Monitor
from pipelines.run.beam import _note_workers, _run_on_engine


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


def test_a_job_server_that_does_not_answer_is_named() -> None:
    def run() -> None:
        raise grpc.FutureTimeoutError  # as grpc raises it, without a text

    options = PipelineOptions(["--job_endpoint=localhost:1", "--job_server_timeout=7"])
    with pytest.raises(OSError, match="job server at localhost:1 did not answer within 7 s; check"):
        _run_on_engine(SimpleNamespace(run=run), options)
