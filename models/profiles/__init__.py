"""Measured efficiencies and their error bands."""
