"""The controller: what runs in the cluster (design, Layout)."""
