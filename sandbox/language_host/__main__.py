"""Serve the language host as a Pulumi plugin: `python -m sandbox.language_host [FLAGS] ENGINE`."""

from __future__ import annotations

import sys

from pulumi.runtime.proto import language_pb2_grpc

from sandbox.language_host.host import LanguageHost
from sandbox.pulumi_aws.plugin import serve

if __name__ == "__main__":
    host = LanguageHost(sys.argv[-1])
    serve(lambda server: language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server))
