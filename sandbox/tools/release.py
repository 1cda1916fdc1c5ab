"""Official releases: downloaded, checked against the release's own sha256, unpacked.

Used by `sandbox.tools.provision`. One try with a short time-out; a host that did not answer is not asked
again by this process, so that a machine without internet loses seconds, not minutes. Nothing unverified is
ever kept.
"""

from __future__ import annotations

import hashlib
import io
import platform
import sys
import tarfile
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import attrs

from sandbox.tools.catalogue import Group
from sandbox.tools.progress import step

__all__ = ["ReleaseUnavailable", "download"]

CONNECT_TIMEOUT_S = 4
DOWNLOAD_USUAL_S = 20

_silent_hosts: set[str] = set()


@attrs.frozen
class ReleaseUnavailable(Exception):
    """The official release cannot be had here; the program must be built."""

    reason: str

    def __str__(self) -> str:
        return self.reason


def download(group: Group, destination: Path) -> None:
    """Put every program of the group into `destination`. Raises: ReleaseUnavailable."""
    release = group.release
    if release is None:
        raise ReleaseUnavailable(f"{group.name} publishes no checksums with its release")
    architecture = release.architectures.get(platform.machine())
    if not sys.platform.startswith("linux") or architecture is None:
        raise ReleaseUnavailable(f"no release for {sys.platform}/{platform.machine()}")
    with step(f"{group.name} {group.version}: downloading the official release", DOWNLOAD_USUAL_S) as shown:
        for program in group.programs:
            shown.detail = program
            names = {"version": group.version, "arch": architecture, "program": program}
            url = release.url.format(**names)
            content = _fetch(url)
            verify(content, _fetch(release.checksums.format(**names)).decode(), file=url.rpartition("/")[2])
            if release.member is not None:
                content = _unpack(content, release.member.format(**names))
            path = destination / program
            path.write_bytes(content)
            path.chmod(0o755)


def verify(content: bytes, checksums: str, *, file: str) -> None:
    """Compare with the sha256 that the release publishes for `file`. Raises: ReleaseUnavailable on any
    doubt.
    """
    actual = hashlib.sha256(content).hexdigest()
    for line in checksums.splitlines():
        digest, _, name = line.strip().partition(" ")
        if name.strip(" *") in ("", file):
            if digest != actual:
                raise ReleaseUnavailable(f"{file}: sha256 is {actual}, the release says {digest}")
            return
    raise ReleaseUnavailable(f"{file}: the release publishes no checksum for it")


def _fetch(url: str) -> bytes:
    host = urlsplit(url).netloc
    if host in _silent_hosts:
        raise ReleaseUnavailable(f"{host} does not answer")
    try:
        with urllib.request.urlopen(url, timeout=CONNECT_TIMEOUT_S) as response:  # noqa: S310 - https URLs of the catalogue
            content: bytes = response.read()
            return content
    except urllib.error.HTTPError as exc:
        raise ReleaseUnavailable(f"{url}: HTTP {exc.code}") from exc
    except OSError as exc:
        _silent_hosts.add(host)
        raise ReleaseUnavailable(f"{host} does not answer ({exc})") from exc


def _unpack(archive: bytes, member: str) -> bytes:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        file = tar.extractfile(member)
        if file is None:
            raise ReleaseUnavailable(f"the archive has no file {member}")
        return file.read()
