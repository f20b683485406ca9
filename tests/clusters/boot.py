"""Start one of Beam's Python workers as ``boot`` does in its images, without their pip.

boot.py --id=... --logging_endpoint=... --provision_endpoint=... --control_endpoint=...
"""

from __future__ import annotations

import argparse
import os

import grpc
from apache_beam.portability.api import (
    beam_provision_api_pb2,
    beam_provision_api_pb2_grpc,
    endpoints_pb2,
)
from apache_beam.runners.worker import sdk_worker_main
from google.protobuf import json_format, text_format


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("id", "logging_endpoint", "provision_endpoint", "control_endpoint"):
        parser.add_argument(f"--{name}", required=True)
    args, _ = parser.parse_known_args()
    with grpc.insecure_channel(args.provision_endpoint) as channel:
        stub = beam_provision_api_pb2_grpc.ProvisionServiceStub(channel)
        request = beam_provision_api_pb2.GetProvisionInfoRequest()
        info = stub.GetProvisionInfo(request, metadata=[("worker_id", args.id)]).info
    os.environ |= {
        "WORKER_ID": args.id,
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options),
        "LOGGING_API_SERVICE_DESCRIPTOR": _descriptor(args.logging_endpoint),
        "CONTROL_API_SERVICE_DESCRIPTOR": _descriptor(args.control_endpoint),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
    }
    sdk_worker_main.main(["boot"])


def _descriptor(url: str) -> str:
    return text_format.MessageToString(endpoints_pb2.ApiServiceDescriptor(url=url))


if __name__ == "__main__":
    main()
