"""The embedded default: AWS and Kubernetes on one machine, real wherever it can be.

Parts: `tools` (programs), `kubernetes` (a real control plane), `aws` (moto with its gaps filled), `nodes`
(nodes from instances), `host_pods` (the controller as a process), `machine` (all of them together).
"""

from __future__ import annotations
