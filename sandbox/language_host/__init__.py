"""A Python language host for plain `pulumi up`, where the official one cannot be had.

Called by Pulumi's engine through a launcher named `pulumi-language-python`.
"""
