"""The library under the stacks and the controller: kinds, Pulumi components, IAM table."""
