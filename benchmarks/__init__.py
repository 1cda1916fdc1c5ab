"""Measurements, side by side with the peer where there is one. Not part of the distribution."""
