"""Make `limits.json` from the folder of facts about EC2 (July to August 2026).

Run by hand: ``python controller/cloud/aws/data/generate_limits.py FOLDER``, where the folder holds
`network-bandwidth-mbps.json` and `trunk-interfaces.json`. Writes, by instance type, the baseline
network bandwidth in Mbit/s and the number of branch interfaces of types that can trunk. Both come
from the generated tables of Karpenter's AWS provider (Apache-2.0), August 2026.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

_DATED = "2026-08"


def main(folder: Path) -> None:
    """Read both tables and write the one that is shipped."""
    bandwidth = json.loads((folder / "network-bandwidth-mbps.json").read_text())
    trunks = json.loads((folder / "trunk-interfaces.json").read_text())
    document = {
        "dated": _DATED,
        "bandwidthMbps": dict(sorted(bandwidth.items())),
        "branchInterfaces": {
            name: item["branchInterfaces"] for name, item in sorted(trunks.items()) if item["trunk"]
        },
    }
    target = Path(__file__).with_name("limits.json")
    target.write_text(json.dumps(document, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
