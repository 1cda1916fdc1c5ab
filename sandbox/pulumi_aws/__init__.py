"""A stand-in for Pulumi's AWS provider plugin, over boto3, for the sandbox.

Called by Pulumi's engine, which starts it through a launcher, and by the demo and
the tests through `sandbox.pulumi_aws.engine`. Carries the resource types that the
stacks use and refuses all others; it is not meant for a real account, where the
official provider is used with the very same programs.
"""
