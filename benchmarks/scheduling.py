"""Engine and peer on the same workload files, in one run: `python -m benchmarks.scheduling`.

Both plans are verified (the peer's by the peer itself); the table shows pods per second, hourly cost,
peak memory, the lower bound and the ratios, medians of three rounds. `--json FILE` writes the figures,
`--plot FILE` draws them. The peer is built once with Go and kept in the user's cache.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.fleet import fleet

HERE = Path(__file__).parent
PEER_FILES = ("main.go", "rss.go", "go.mod", "go.sum")
STANDARD = ("plain 5000", "replicas 5000", "distinct 5000", "diverse 5000", "preferences 500", "fleet 5000")
REFERENCE = STANDARD[:5]
"""The workloads that the goals for speed are set on."""
SPEED_GOAL, SPEED_FLOOR = 50.0, 10.0
Figures = dict[str, Any]


def peer_program() -> Path:
    """Return the peer, built with Go when the cache does not hold this version of it."""
    digest = hashlib.sha256(b"".join((HERE / "peer" / name).read_bytes() for name in PEER_FILES)).hexdigest()
    cache = (
        Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "charpente" / "peer" / digest[:16]
    )
    program = cache / "peer"
    if not program.exists():
        cache.mkdir(parents=True, exist_ok=True)
        print("building the peer with Go, once; usually 3 minutes", file=sys.stderr)
        partial = cache / f"peer.{os.getpid()}"
        subprocess.run(
            ["go", "build", "-o", str(partial), "."],  # noqa: S607 - the user's Go
            cwd=HERE / "peer",
            env={**os.environ, "GOTOOLCHAIN": "auto"},
            check=True,
        )
        partial.rename(program)
    return program


def write_workload(name: str, folder: Path) -> Path:
    """Write `KIND COUNT` as a workload file."""
    kind, count = name.split()
    path = folder / f"{kind}-{count}.json"
    if kind == "fleet":
        path.write_text(json.dumps(fleet(int(count))))
    else:
        command = [sys.executable, str(HERE / "peer" / "workload.py"), kind, count]
        path.write_bytes(subprocess.run(command, check=True, capture_output=True).stdout)
    return path


def measure(name: str, path: Path, arguments: argparse.Namespace) -> Figures:
    """Run both on one file and return the figures of the table."""
    rounds = str(arguments.rounds)
    command = [sys.executable, "-m", "benchmarks.engine", str(path), "--rounds", rounds]
    command += ["--objective", arguments.objective] + (["--no-verify"] if arguments.no_verify else [])
    ours: Figures = json.loads(
        subprocess.run(command, check=True, capture_output=True).stdout.splitlines()[-1]
    )
    if ours["violations"]:
        raise SystemExit(f"{name}: the plan breaks rules: {ours['violations']}")
    theirs: Figures | None = None
    if not arguments.no_peer:
        peer = [str(peer_program()), "-workload", str(path), "-rounds", rounds]
        theirs = json.loads(subprocess.run(peer, check=True, capture_output=True).stdout)
    return _figures(name, ours, theirs)


def _figures(name: str, ours: Figures, theirs: Figures | None) -> Figures:
    seconds = statistics.median(ours["seconds"])
    figures = {
        "name": name,
        "seconds": seconds,
        "hourlyCost": ours["hourlyCost"],
        "bound": ours["bound"],
        "peakMiB": ours["peakMiB"],
        "nodes": ours["nodes"],
        "unplaced": ours["unplaced"],
    }
    if theirs is not None:
        peer_seconds = statistics.median(theirs["seconds"])
        figures |= {
            "peerSeconds": peer_seconds,
            "speedRatio": peer_seconds / seconds,
            "peerHourlyCost": theirs["hourlyCost"],
            "costRatio": ours["hourlyCost"] / theirs["hourlyCost"],
            "peerPeakMiB": theirs["peakRSSMiB"],
            "peerNodes": len(theirs["nodes"]),
            "peerUnplaced": len(theirs["unscheduled"]),
        }
    return figures


def show(figures: Figures) -> None:
    """Print one line of the table."""
    pods = int(figures["name"].split()[1])
    line = (
        f"{figures['name']:17} {figures['seconds']:8.3f} s {pods / figures['seconds']:9.0f} pods/s "
        f"{figures['hourlyCost']:10.2f} USD/h {figures['hourlyCost'] / figures['bound']:6.3f} x bound "
        f"{figures['peakMiB']:6.0f} MiB"
    )
    if "peerSeconds" in figures:
        line += (
            f" | peer {figures['peerSeconds']:8.2f} s {figures['peerHourlyCost']:10.2f} USD/h "
            f"{figures['peerPeakMiB']:6.0f} MiB | {figures['speedRatio']:6.1f} x faster, "
            f"cost {figures['costRatio']:.4f}"
        )
    print(line, flush=True)


def plot(rows: list[Figures], path: Path) -> None:
    """Draw seconds and cost over the bound, side by side."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    names = [row["name"] for row in rows]
    places = range(len(rows))
    _, (left, right) = plt.subplots(1, 2, figsize=(12, 4))
    for axis, ours, theirs, title in (
        (left, "seconds", "peerSeconds", "seconds"),
        (right, "hourlyCost", "peerHourlyCost", "USD/h over the lower bound"),
    ):
        scale = [1.0 if axis is left else row["bound"] for row in rows]
        axis.bar(
            [p - 0.2 for p in places],
            [r[ours] / s for r, s in zip(rows, scale, strict=True)],
            0.4,
            label="ours",
        )
        peers = [r.get(theirs, 0.0) / s for r, s in zip(rows, scale, strict=True)]
        axis.bar([p + 0.2 for p in places], peers, 0.4, label="peer")
        axis.set_xticks(list(places), names, rotation=20)
        axis.set_title(title)
        axis.legend()
    left.set_yscale("log")
    plt.tight_layout()
    plt.savefig(path)


def main() -> int:
    """Measure, print and write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", default=STANDARD, help='such as "diverse 5000"')
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--objective", default="FirstFit", choices=["FirstFit", "Cost"])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--no-verify", action="store_true")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.workloads:
            rows.append(measure(name, write_workload(name, Path(folder)), arguments))
            show(rows[-1])
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({"workloads": rows}, indent=1))
    if arguments.plot is not None:
        plot(rows, arguments.plot)
    ratios = [row["speedRatio"] for row in rows if "speedRatio" in row and row["name"] in REFERENCE]
    if ratios:
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
        print(
            f"geometric mean {mean:.1f} x (goal {SPEED_GOAL}), least {min(ratios):.1f} x (goal {SPEED_FLOOR})"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
