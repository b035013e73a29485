"""Architectures, devices and clusters by name, and readers of users' files."""
