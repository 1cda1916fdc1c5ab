"""The certificates of one control plane: an authority of its own, and what it signs.

Used by `sandbox.kubernetes.control_plane`, and by whoever needs a client certificate of a sandbox (a
node's, a user's). Keys are P-256: made in a millisecond each. Nothing here is meant to outlive the sandbox.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

import attrs
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["Authority", "KeyPair", "new_key"]

LIFETIME = datetime.timedelta(days=365)
CLOCK_SKEW = datetime.timedelta(minutes=5)


@attrs.frozen(kw_only=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes = attrs.field(repr=False)

    def write(self, directory: Path, name: str) -> tuple[Path, Path]:
        """Write `<name>.crt` and `<name>.key` (mode 0600) and return their paths."""
        directory.mkdir(parents=True, exist_ok=True)
        certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
        certificate.write_bytes(self.certificate)
        key.touch(mode=0o600)
        key.write_bytes(self.key)
        return certificate, key


def new_key() -> bytes:
    """Return a new P-256 private key as PEM, for instance to sign service account tokens with."""
    return _pem(ec.generate_private_key(ec.SECP256R1()))


@attrs.frozen
class Authority:
    """A certificate authority; `pair` is what verifies and signs."""

    pair: KeyPair

    @classmethod
    def create(cls, common_name: str) -> Authority:
        """Make a new self-signed authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        certificate = (
            _builder(name, name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(ca=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(KeyPair(certificate=_pem_of(certificate), key=_pem(key)))

    @classmethod
    def load(cls, directory: Path, name: str = "ca") -> Authority:
        """Read the authority that `pair.write(directory, name)` left."""
        return cls(
            KeyPair(
                certificate=(directory / f"{name}.crt").read_bytes(),
                key=(directory / f"{name}.key").read_bytes(),
            )
        )

    def issue(
        self, common_name: str, *, organizations: Sequence[str] = (), hosts: Sequence[str] = ()
    ) -> KeyPair:
        """Sign a certificate for a client, and for a server too when `hosts` (names or addresses) are
        given.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
        attributes += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in organizations]
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])]
        issuer = x509.load_pem_x509_certificate(self.pair.certificate)
        builder = (
            _builder(x509.Name(attributes), issuer.subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(ca=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        )
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_host(h) for h in hosts]), critical=False
            )
        signer = serialization.load_pem_private_key(self.pair.key, password=None)
        if not isinstance(signer, ec.EllipticCurvePrivateKey):
            raise TypeError(f"the authority's key is a {type(signer).__name__}, not an elliptic curve key")
        return KeyPair(certificate=_pem_of(builder.sign(signer, hashes.SHA256())), key=_pem(key))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + LIFETIME)
    )


def _key_usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not ca,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _pem_of(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
