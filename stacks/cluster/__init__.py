"""The folder of the cluster's stack."""
