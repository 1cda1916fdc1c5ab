"""Where the API server is and how to prove who we are.

Called once by `charpente run` and by each command that talks to a cluster. Configuration and
authentication come from the official client (`kubernetes.aio.config`): a kubeconfig, or the service
account of the pod. The token file is read again every minute, so rotated tokens are picked up.
Never sends a request.
"""

from __future__ import annotations

import base64
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config import incluster_config, kube_config
from kubernetes.aio.config.config_exception import ConfigException

from framework.api import UserError

__all__ = ["SERVICEACCOUNT_DIR_ENV", "Connection", "NoCluster", "connect", "pod_namespace"]

SERVICEACCOUNT_DIR_ENV: Final = "CHARPENTE_SERVICEACCOUNT_DIR"
"""Overrides the directory of token, ca.crt and namespace; for a controller that runs beside its pod."""
_DEFAULT_KUBECONFIG: Final = str(Path("~/.kube/config").expanduser())
_SERVICEACCOUNT_DIR: Final = "/var/run/secrets/kubernetes.io/serviceaccount"


class NoCluster(UserError):
    """No usable configuration of a cluster was found."""


@attrs.frozen(kw_only=True)
class Connection:
    """A server's address and the means to authenticate; what `Client` is made from."""

    configuration: Any = attrs.field(repr=False)
    """The official client's configuration; untyped there."""
    loader: Any = attrs.field(default=None, repr=False)
    """The kubeconfig's loader when its user runs a command for tokens, else None."""

    @property
    def server(self) -> str:
        """Return the base URL."""
        return str(self.configuration.host).rstrip("/")

    @property
    def server_name(self) -> str | None:
        """Return the name expected in the server's certificate when it is not the host's."""
        name = self.configuration.tls_server_name
        return str(name) if name else None

    def tls(self) -> ssl.SSLContext | bool:
        """Return the TLS context, with the client certificate if there is one; False for plain HTTP."""
        if not self.server.startswith("https"):
            return False
        context: ssl.SSLContext = RESTClientObject(self.configuration).ssl_context
        return context

    def ca_bundle(self) -> str:
        """Return the CA that the server is trusted by, PEM in base64; empty when it is the system's."""
        path = self.configuration.ssl_ca_cert
        return base64.b64encode(Path(path).read_bytes()).decode() if path else ""

    async def authorization(self) -> str | None:
        """Return the value of the Authorization header; a token file is read again after a minute."""
        value = await self.configuration.get_api_key_with_prefix("BearerToken")
        return str(value).strip() if value else None

    async def refresh(self) -> None:
        """Run the kubeconfig's token command again; nothing when it has none."""
        if self.loader is not None:
            await self.loader.load_from_exec_plugin()
            self.configuration.api_key["BearerToken"] = self.loader.token


async def connect(kubeconfig: str | None = None, environ: Mapping[str, str] | None = None) -> Connection:
    """Return the connection of the given kubeconfig, else of the pod, else of the user's default kubeconfig.

    Raises NoCluster, naming the file or variable that is wrong.
    """
    environ = os.environ if environ is None else environ
    if kubeconfig is None and environ.get(incluster_config.SERVICE_HOST_ENV_NAME):
        return _in_cluster(environ)
    path = kubeconfig or environ.get("KUBECONFIG") or _DEFAULT_KUBECONFIG
    configuration = Configuration()
    try:
        loader = await kube_config.load_kube_config(
            config_file=path, client_configuration=configuration, persist_config=False
        )
    except (ConfigException, OSError) as exc:
        raise NoCluster(
            f"kubeconfig {path} cannot be used: {exc}; give --kubeconfig or set KUBECONFIG"
        ) from exc
    user = loader._user  # the official client's own refresh looks here too
    runs_command = user is not None and "exec" in user
    return Connection(configuration=configuration, loader=loader if runs_command else None)


def pod_namespace(environ: Mapping[str, str]) -> str:
    """Return the namespace this process belongs to: its pod's, else `kube-system`."""
    named = environ.get("SYSTEM_NAMESPACE")
    if named:
        return named
    file = _serviceaccount_dir(environ) / "namespace"
    return file.read_text(encoding="utf-8").strip() if file.is_file() else "kube-system"


def _in_cluster(environ: Mapping[str, str]) -> Connection:
    directory = _serviceaccount_dir(environ)
    loader = incluster_config.InClusterConfigLoader(
        token_filename=str(directory / "token"), cert_filename=str(directory / "ca.crt"), environ=environ
    )
    configuration = Configuration()
    try:
        loader.load_and_set(configuration)
    except (ConfigException, OSError) as exc:
        raise NoCluster(f"service account in {directory} cannot be used: {exc}; mount a token there") from exc
    return Connection(configuration=configuration)


def _serviceaccount_dir(environ: Mapping[str, str]) -> Path:
    return Path(environ.get(SERVICEACCOUNT_DIR_ENV) or _SERVICEACCOUNT_DIR)
