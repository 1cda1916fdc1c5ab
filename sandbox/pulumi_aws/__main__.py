"""Serve the provider as a Pulumi plugin: `python -m sandbox.pulumi_aws [ENGINE]`.

Started by the engine through the launcher. Prints the port and nothing else on
stdout; ends at once on SIGINT and SIGTERM, as the engine waits for it.
"""

from __future__ import annotations

from pulumi.runtime.proto import provider_pb2_grpc

from sandbox.pulumi_aws.plugin import serve
from sandbox.pulumi_aws.provider import Provider

if __name__ == "__main__":
    serve(lambda server: provider_pb2_grpc.add_ResourceProviderServicer_to_server(Provider(), server))
