"""Kubeconfig files: written for the people and programs of a sandbox, read to reach any cluster.

Used by the control plane (one file per component), by `sandbox.nodes` and by tests. Knows client
certificates and bearer tokens; an `exec` section is for kubectl and is refused here with a clear error.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import attrs
import yaml

from sandbox.errors import SandboxError
from sandbox.kubernetes.certificates import KeyPair

__all__ = ["Access"]


@attrs.frozen(kw_only=True)
class Access:
    """How to reach an API server and as whom: a client certificate or a bearer token."""

    server: str
    authority: bytes
    """PEM of the certificate authority that signed the server's certificate."""
    client: KeyPair | None = None
    token: str | None = attrs.field(default=None, repr=False)

    def write(self, path: Path, *, name: str = "sandbox") -> Path:
        """Write a kubeconfig (mode 0600) with everything embedded, and return its path."""
        user: dict[str, str] = {}
        if self.client is not None:
            user["client-certificate-data"] = _base64(self.client.certificate)
            user["client-key-data"] = _base64(self.client.key)
        if self.token is not None:
            user["token"] = self.token
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": name,
                    "cluster": {"server": self.server, "certificate-authority-data": _base64(self.authority)},
                }
            ],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path

    @classmethod
    def read(cls, path: Path) -> Access:
        """Read the current context of a kubeconfig.

        Raises: SandboxError naming the file when it is missing, malformed or uses a login that is not known
        here.
        """
        try:
            config = yaml.safe_load(path.read_text())
            context = _named(config["contexts"], config["current-context"])["context"]
            cluster = _named(config["clusters"], context["cluster"])["cluster"]
            user = _named(config["users"], context["user"])["user"]
            client = None
            if "client-certificate-data" in user or "client-certificate" in user:
                client = KeyPair(
                    certificate=_bytes(user, "client-certificate", path), key=_bytes(user, "client-key", path)
                )
            access = cls(
                server=cluster["server"],
                authority=_bytes(cluster, "certificate-authority", path),
                client=client,
                token=user.get("token"),
            )
        except FileNotFoundError as exc:
            raise SandboxError(
                f"kubeconfig {path}", "does not exist", "give --kubeconfig an existing file"
            ) from exc
        except (KeyError, TypeError, ValueError, yaml.YAMLError) as exc:
            raise SandboxError(f"kubeconfig {path}", f"cannot be read ({exc!r})", "write it anew") from exc
        if access.client is None and access.token is None:
            raise SandboxError(
                f"kubeconfig {path}", "has neither a client certificate nor a token", "use one of the two"
            )
        return access


def _named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for item in items:
        if item["name"] == name:
            return item
    raise KeyError(name)


def _bytes(section: dict[str, str], key: str, path: Path) -> bytes:
    if f"{key}-data" in section:
        return base64.b64decode(section[f"{key}-data"])
    return (path.parent / section[key]).read_bytes()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
