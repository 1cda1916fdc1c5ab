"""AWS on one machine: moto's server with the gaps filled that the platform and the controller touch.

Start it with `python -m sandbox.aws`, `AwsProcess` or, inside a test, `AwsServer`; steer it with
`sandbox.aws.control.Control`. What it does not model it refuses by name. It does not evaluate IAM policies,
and its capacity and timing are set, not real.
"""

from sandbox.aws.server import AwsProcess, AwsServer

__all__ = ["AwsProcess", "AwsServer"]
