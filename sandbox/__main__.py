"""`python -m sandbox`: the command line of the sandbox.

    up | status | down             the whole sandbox of a folder
    env                            what a shell needs to talk to it
    platform up | destroy          the root Pulumi program on it
    demo                           the main job, end to end, on a sandbox of its own
    kubernetes | aws | nodes       one part alone, beside whatever else is there
    tools                          provide every program the sandbox needs

Answers go to stdout, progress to stderr. Exit codes: 0 done, 1 the answer is no, 2 something to mend.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from sandbox import tools
from sandbox.errors import SandboxError
from sandbox.kubernetes import Options
from sandbox.machine import PARTS, REGION, Sandbox, SandboxOptions
from sandbox.state import default_directory

__all__ = ["main"]

Command = Callable[..., Any]


def _directory(command: Command) -> Command:
    return click.option(
        "--dir",
        "directory",
        type=click.Path(file_okay=False, path_type=Path),
        default=default_directory,
        show_default="the user's state folder",
        help="Folder of the sandbox; sandboxes in different folders run side by side.",
    )(command)


def _region(command: Command) -> Command:
    return click.option("--region", default=REGION, show_default=True, help="AWS region.")(command)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """A local AWS and a real Kubernetes control plane; no account, no container runtime."""


@cli.command()
@_directory
@_region
@click.option("--port", type=int, help="Port of the API server; any free one if not given.")
@click.option("--aws-port", type=int, help="Port of AWS; any free one if not given.")
@click.option(
    "--node-grace", type=int, help="Seconds of silence after which a node is not ready [default: 50]."
)
def up(directory: Path, region: str, port: int | None, aws_port: int | None, node_grace: int | None) -> None:
    """Start everything, detached, and print how to use it."""
    options = SandboxOptions(
        region=region, aws_port=aws_port, kubernetes=Options(port=port, node_grace_s=node_grace)
    )
    sandbox = Sandbox(directory.absolute(), options)
    began = time.monotonic()
    sandbox.start()
    click.echo(f"sandbox is up in {time.monotonic() - began:.1f} s ({sandbox.directory})\n")
    _print_use(sandbox)


@cli.command()
@_directory
def status(directory: Path) -> None:
    """Show what runs; exit code 1 when not everything does."""
    sandbox = Sandbox(directory.absolute())
    known = {r.name: r for r in sandbox.processes.all()}
    table = Table("process", "pid", "state", "log")
    healthy = True
    for name in (*PARTS, *sorted(set(known) - set(PARTS))):
        running = known.get(name)
        alive = running is not None and running.alive
        healthy = healthy and alive
        state = "running" if alive else "ended" if running else "not started"
        table.add_row(name, str(running.pid) if running else "", state, str(sandbox.processes.log_path(name)))
    Console(width=max(100, Console().width)).print(table)
    state_of = sandbox.state
    click.echo(
        f"API server {state_of.server or 'not running'}\nAWS        {state_of.aws_endpoint or 'not running'}"
    )
    if healthy:
        _print_use(sandbox)
    else:
        click.echo("not everything runs: `python -m sandbox down`, then `up`")
        raise SystemExit(1)


@cli.command()
@_directory
def env(directory: Path) -> None:
    """Print what a shell needs to talk to the sandbox; use it as eval "$(python -m sandbox env)"."""
    # Only here are these needed, and Pulumi's SDK takes a second.
    from sandbox.pulumi_aws.engine import Engine
    from stacks.programs.config import StackConfig

    sandbox = Sandbox(directory.absolute())
    own = sandbox.environment
    variables = {**own, "CLUSTER_NAME": StackConfig().cluster_name}
    folders = []
    if tools.locate("pulumi") is not None and tools.locate("pulumi-resource-kubernetes") is not None:
        engine = Engine(
            root=directory.absolute() / "pulumi", aws_endpoint=sandbox.aws_endpoint, region=own["AWS_REGION"]
        )
        variables = {**engine.environment(), **variables}
        folders = variables.pop("PATH").split(os.pathsep)[:2]
    kubectl = tools.locate("kubectl")
    folders += [] if kubectl is None else [str(Path(kubectl).parent)]
    for name, value in variables.items():
        click.echo(f"export {name}={shlex.quote(value)}")
    click.echo(f'export PATH={shlex.quote(os.pathsep.join(folders))}:"$PATH"')


@cli.command()
@_directory
def down(directory: Path) -> None:
    """End everything and remove its files, also after a crash."""
    sandbox = Sandbox(directory.absolute())
    stopped = sandbox.stop()
    if stopped:
        click.echo(f"stopped {', '.join(stopped)}; logs stay in {sandbox.directory / 'logs'}")
    else:
        click.echo(f"nothing runs in {sandbox.directory}")


@cli.command("tools")
def provide_tools() -> None:
    """Find, download or build every program the sandbox needs, and print where it is."""
    began = time.monotonic()
    found = tools.ensure()
    table = Table("program", "version", "path")
    for group in tools.GROUPS:
        for program in group.programs:
            table.add_row(program, group.version, str(found[program]))
    Console(width=max(100, Console().width)).print(table)
    click.echo(f"{len(found)} programs in {time.monotonic() - began:.0f} s")


@cli.command()
@_directory
@click.option("--port", type=int, help="Port of the API server; any free one if not given.")
def kubernetes(directory: Path, port: int | None) -> None:
    """Start a control plane alone, detached."""
    sandbox = Sandbox(directory.absolute(), SandboxOptions(kubernetes=Options(port=port)))
    sandbox.start_kubernetes()
    click.echo(f"export KUBECONFIG={sandbox.kubeconfig}")


@cli.command()
@_directory
@_region
@click.option("--port", type=int, help="Any free one if not given.")
def aws(directory: Path, region: str, port: int | None) -> None:
    """Start AWS alone, detached."""
    sandbox = Sandbox(directory.absolute(), SandboxOptions(region=region, aws_port=port))
    sandbox.start_aws()
    click.echo(f"export AWS_ENDPOINT_URL={sandbox.aws_endpoint} AWS_REGION={region}")


@cli.command()
@_directory
@_region
@click.option(
    "--kubeconfig", type=click.Path(path_type=Path), required=True, help="An identity that may impersonate."
)
@click.option("--endpoint", required=True, help="Address of AWS.")
@click.option("--token-webhook-port", type=int, hidden=True)
@click.option("--foreground", is_flag=True, help="Stay attached; end with SIGTERM or Ctrl-C.")
def nodes(
    directory: Path,
    region: str,
    kubeconfig: Path,
    endpoint: str,
    token_webhook_port: int | None,
    foreground: bool,
) -> None:
    """Make nodes of the instances of an AWS, in any control plane."""
    if foreground:
        from sandbox import daemon  # boto3 takes half a second to import: only here is it needed

        daemon.run(
            daemon.Config(
                kubeconfig=kubeconfig,
                endpoint=endpoint,
                region=region,
                directory=directory.absolute(),
                token_webhook_port=token_webhook_port,
            )
        )
        return
    sandbox = Sandbox(directory.absolute(), SandboxOptions(region=region))
    sandbox.start_nodes(kubeconfig.absolute(), endpoint)
    click.echo(f"nodes are made; log in {sandbox.processes.log_path('nodes')}")


@cli.command()
def demo() -> None:
    """Show the main job end to end, on a sandbox of its own, and leave nothing."""
    from sandbox.demo import run  # the Pulumi SDK takes a second to import: only here is it needed

    run()


@cli.command()
@_directory
@click.argument("action", type=click.Choice(("up", "destroy")))
def platform(directory: Path, action: str) -> None:
    """Make the platform on a running sandbox with the root Pulumi program, or take it down."""
    from sandbox.platform import Platform

    made = Platform(Sandbox(directory.absolute()))
    outcome = made.up(progress=_tell) if action == "up" else made.destroy(progress=_tell)
    changes = ", ".join(f"{count} {operation}" for operation, count in sorted(outcome.changed.items()))
    click.echo(f"platform {action} in {outcome.seconds:.0f} s: {changes or 'no change'}")


def _tell(line: str) -> None:
    click.echo(line, err=True)


@cli.command(hidden=True)
@_directory
def guard(directory: Path) -> None:
    """End the sandbox of a folder when stdin closes: when the process that started this one is gone."""
    sys.stdin.buffer.read()
    Sandbox(directory.absolute()).stop()


def _print_use(sandbox: Sandbox) -> None:
    here = shlex.join([sys.executable, "-m", "sandbox", "env", "--dir", str(sandbox.directory)])
    click.echo(
        f'eval "$({here})"\n'
        "kubectl get nodes\n"
        "aws ec2 describe-instances               # or boto3\n"
        "python -m sandbox status | down"
    )


def main() -> None:
    """Run the command; a problem that the user can mend is one line and exit code 2."""
    try:
        cli(prog_name="python -m sandbox", standalone_mode=False)
    except SandboxError as exc:
        click.echo(str(exc), err=True)
        raise SystemExit(2) from exc
    except click.ClickException as exc:
        exc.show()
        raise SystemExit(2) from exc
    except (click.Abort, KeyboardInterrupt):
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
