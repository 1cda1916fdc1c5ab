"""What programs the sandbox needs, in which version, and how each can be had.

Data only: read by `sandbox.tools.provision`. Every version stands here once; the module files in `modules/`
pin the same versions with the checksums of everything they are built from.
"""

from __future__ import annotations

from enum import StrEnum

import attrs

__all__ = ["GROUPS", "Accepts", "Group", "Release", "group_of"]


class Accepts(StrEnum):
    """How near to the pinned version a program found on PATH must be."""

    SAME_MINOR = "minor"
    SAME_MAJOR = "major"
    NEVER = "never"


@attrs.frozen(kw_only=True)
class Release:
    """Where the official release of a program is. `{version}`, `{arch}` (amd64, arm64) and `{program}` are
    filled in.
    """

    url: str
    checksums: str
    """A file of the same release: lines of `<sha256>  <file>`, or one bare sha256."""
    member: str | None = None
    """Path of the program inside the archive; None when the file is the program itself."""
    architectures: dict[str, str] = attrs.field(factory=lambda: {"x86_64": "amd64", "aarch64": "arm64"})


@attrs.frozen(kw_only=True)
class Group:
    """Programs that come from one module, and are downloaded or built together."""

    name: str
    version: str
    programs: tuple[str, ...]
    packages: tuple[str, ...]
    """The Go packages to build, one per program and in the same order."""
    usual_build_s: int
    """Seconds a build takes on two cores, to show progress against."""
    linker_flags: str = "-s -w"
    embeds: dict[str, str] = attrs.field(factory=dict)
    """Files to copy beside the module's main first: name → path inside the module of `embeds_from`."""
    embeds_from: str | None = None
    release: Release | None = None
    version_arguments: tuple[str, ...] = ("--version",)
    accepts: Accepts = Accepts.SAME_MINOR


_KUBERNETES = "1.34.4"
_PULUMI = "3.274.1"

GROUPS: tuple[Group, ...] = (
    Group(
        name="etcd",
        version="3.6.16",
        programs=("etcd",),
        packages=("go.etcd.io/etcd/server/v3",),
        usual_build_s=60,
        release=Release(
            url="https://github.com/etcd-io/etcd/releases/download/v{version}/etcd-v{version}-linux-{arch}.tar.gz",
            checksums="https://github.com/etcd-io/etcd/releases/download/v{version}/SHA256SUMS",
            member="etcd-v{version}-linux-{arch}/etcd",
        ),
    ),
    Group(
        name="kubernetes",
        version=_KUBERNETES,
        programs=("kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubectl"),
        packages=(
            "k8s.io/kubernetes/cmd/kube-apiserver",
            "k8s.io/kubernetes/cmd/kube-scheduler",
            "k8s.io/kubernetes/cmd/kube-controller-manager",
            "k8s.io/kubernetes/cmd/kubectl",
        ),
        usual_build_s=480,
        linker_flags="-s -w"
        f" -X k8s.io/component-base/version.gitVersion=v{_KUBERNETES}"
        " -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=34",
        release=Release(
            url="https://dl.k8s.io/v{version}/bin/linux/{arch}/{program}",
            checksums="https://dl.k8s.io/v{version}/bin/linux/{arch}/{program}.sha256",
        ),
    ),
    Group(
        name="kwok",
        version="0.7.0",
        programs=("kwok",),
        packages=("sigs.k8s.io/kwok/cmd/kwok",),
        usual_build_s=120,
        linker_flags="-s -w -X sigs.k8s.io/kwok/pkg/consts.Version=0.7.0",
    ),
    Group(
        name="pulumi",
        version=_PULUMI,
        programs=("pulumi",),
        packages=("github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",),
        usual_build_s=300,
        linker_flags=f"-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v{_PULUMI}",
        release=Release(
            url="https://github.com/pulumi/pulumi/releases/download/v{version}/pulumi-v{version}-linux-{arch}.tar.gz",
            checksums="https://github.com/pulumi/pulumi/releases/download/v{version}/pulumi-{version}-checksums.txt",
            member="pulumi/pulumi",
            architectures={"x86_64": "x64", "aarch64": "arm64"},
        ),
        version_arguments=("version",),
        accepts=Accepts.SAME_MAJOR,
    ),
    Group(
        name="pulumi-kubernetes",
        version="4.34.2",
        programs=("pulumi-resource-kubernetes",),
        packages=(".",),
        usual_build_s=900,
        embeds={
            "schema.json": "cmd/pulumi-resource-kubernetes/schema.json",
            "mapping.json": "cmd/pulumi-resource-kubernetes/terraform-mapping.json",
        },
        embeds_from="github.com/pulumi/pulumi-kubernetes/provider/v4",
        accepts=Accepts.NEVER,
    ),
)
"""In the order in which `python -m sandbox tools` provides them."""


def group_of(program: str) -> Group:
    """Return the group that a program belongs to. Raises: KeyError for an unknown program."""
    for group in GROUPS:
        if program in group.programs:
            return group
    raise KeyError(program)
