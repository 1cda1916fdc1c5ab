"""Kubeconfigs and certificates are what they should be; bad files are named."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509

from sandbox.errors import SandboxError
from sandbox.kubernetes import Access, Authority


def test_a_kubeconfig_is_read_back_as_written_and_private(tmp_path: Path) -> None:
    authority = Authority.create("test")
    access = Access(
        server="https://127.0.0.1:1", authority=authority.pair.certificate, client=authority.issue("someone")
    )

    path = access.write(tmp_path / "kubeconfig")

    assert Access.read(path) == access
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [("", "cannot be read"), ("a: [", "cannot be read"), ("clusters: []", "cannot be read")],
)
def test_a_malformed_kubeconfig_is_named(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(content)

    with pytest.raises(SandboxError, match=reason) as caught:
        Access.read(path)

    assert str(path) in str(caught.value)


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"nowhere: does not exist; give --kubeconfig"):
        Access.read(tmp_path / "nowhere")


def test_an_issued_certificate_names_the_user_and_its_groups_and_is_signed_by_the_authority() -> None:
    authority = Authority.create("test")

    pair = authority.issue("system:node:a", organizations=("system:nodes",), hosts=("127.0.0.1", "localhost"))

    certificate = x509.load_pem_x509_certificate(pair.certificate)
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.pair.certificate))
    assert certificate.subject.rfc4514_string() in (
        "CN=system:node:a,O=system:nodes",
        "O=system:nodes,CN=system:node:a",
    )
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(n.value) for n in names] == ["127.0.0.1", "localhost"]
