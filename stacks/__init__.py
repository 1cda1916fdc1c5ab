"""The programs that `pulumi up` runs.

Each program is a function, so that the command line and the Automation API run the
same code. Owns configuration and the order of things; what is made is in
`framework.components`.
"""
