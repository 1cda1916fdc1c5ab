"""The folder of the controller's stack, with the pools that GitOps edits."""
