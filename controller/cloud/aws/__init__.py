"""The AWS provider: everything between a NodeClaim and a running EC2 instance (spec aws/)."""
