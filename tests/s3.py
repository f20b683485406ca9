"""A real S3 server on this machine: corpora, work folders and outputs in a bucket of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from miner.storage.places import RemotePath, place, tree_files

BUCKET = "corpora"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "someone",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_EC2_METADATA_DISABLED": "true",  # or clients ask the network who they are
}


@dataclass(frozen=True, kw_only=True)
class S3:
    """A folder of the bucket on the server at ``port``."""

    port: int
    folder: str

    def uri(self, name: str, *, bucket: str = BUCKET, port: int | None = None) -> str:
        """The URI of a file or folder in it."""
        options = f"endpoint_override=127.0.0.1:{port or self.port}&scheme=http&region=us-east-1"
        return f"s3://{bucket}/{self.folder}/{name}?{options}"

    def told(self, name: str) -> str:
        """How messages name it."""
        return f"s3://{BUCKET}/{self.folder}/{name}"

    def path(self, name: str) -> RemotePath:
        """The same for the library."""
        found = place(self.uri(name))
        assert isinstance(found, RemotePath)
        return found

    def put(self, name: str, content: bytes | Path) -> str:
        """Write a file; its URI."""
        if isinstance(content, Path):
            content = content.read_bytes()
        with self.path(name)._connected() as (filesystem, path):
            with filesystem.open_output_stream(path) as stream:
                stream.write(content)
        return self.uri(name)

    def names(self, name: str) -> set[str]:
        """The names of all files below a folder."""
        return {str(file)[len(self.told(name)) + 1 :] for file, _ in tree_files(self.path(name))}


@contextmanager
def s3_server() -> Iterator[int]:
    """The port of a server with an empty bucket."""
    import boto3
    from moto.server import DomainDispatcherApplication, ThreadedMotoServer

    # It looks for the folders of all its services at each request: a sixth of a run's time.
    DomainDispatcherApplication.get_backend_for_host = lambda self, host: "s3"
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{port}",
            region_name="us-east-1",
            aws_access_key_id="someone",
            aws_secret_access_key="secret",
        ).create_bucket(Bucket=BUCKET)
        yield port
    finally:
        server.stop()
