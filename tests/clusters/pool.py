"""A pool of Beam's Python workers at one address: ``worker_pool_main``, which takes them all.

    python -m tests.clusters.pool ADDRESS:PORT BOOT

Several hosts of a test cluster are addresses of one machine, each with a pool at the same port.
"""

from __future__ import annotations

import sys
import threading

import grpc
from apache_beam.portability.api import beam_fn_api_pb2_grpc
from apache_beam.runners.worker.worker_pool_main import BeamFnExternalWorkerPoolServicer
from apache_beam.utils import thread_pool_executor


def main() -> None:
    address, boot = sys.argv[1:]
    # Beam's own options for the engine's pings; without the last, pools would share a port.
    options = [
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.so_reuseport", 0),
    ]
    executor = thread_pool_executor.shared_unbounded_instance()
    server = grpc.server(executor, options=options)
    server.add_insecure_port(address)
    servicer = BeamFnExternalWorkerPoolServicer(use_process=True, container_executable=boot)
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(servicer, server)
    server.start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
