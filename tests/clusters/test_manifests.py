"""The files of ``deploy/`` against the schemas of those who read them."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from typing import Any

import pytest

from tests.clusters.cluster import ROOT
from tests.clusters.conftest import Need

pytestmark = [pytest.mark.slow, pytest.mark.clusters]

DEPLOY = ROOT / "deploy"
CRD = "META-INF/fabric8/flinkdeployments.flink.apache.org-v1.yml"


def test_the_compose_file_is_one() -> None:
    checker = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    subprocess.run([*checker, str(DEPLOY / "compose.yaml")], check=True)


def test_the_operator_would_take_the_deployment(need: Need) -> None:
    """By the operator's own definition; what that does not name is refused here, too."""
    yaml = pytest.importorskip("yaml")
    jsonschema = pytest.importorskip("jsonschema")
    with zipfile.ZipFile(need("operator").operator_api) as jar:
        definition = yaml.load(jar.read(CRD), yaml.CSafeLoader)
    (version,) = definition["spec"]["versions"]
    schema = closed(version["schema"]["openAPIV3Schema"]["properties"]["spec"])
    deployment = yaml.safe_load((DEPLOY / "flink.yaml").read_text(encoding="utf-8"))
    assert deployment["apiVersion"] == f"flink.apache.org/{version['name']}"
    assert deployment.keys() == {"apiVersion", "kind", "metadata", "spec"}
    jsonschema.validate(deployment["spec"], schema)
    deployment["spec"]["taskManager"]["podTemplat"] = {}
    with pytest.raises(jsonschema.ValidationError, match="podTemplat"):
        jsonschema.validate(deployment["spec"], schema)


def closed(schema: Any) -> Any:
    """A schema that refuses properties which it does not name."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: closed(part) for name, part in schema.items()}
    if isinstance(schema.get("properties"), dict) and "x-kubernetes" not in json.dumps(
        list(schema)
    ):
        found.setdefault("additionalProperties", False)
    return found
