"""Runs case files: public bug reports turned into executable inputs (`python -m tests.cases DIR`)."""
