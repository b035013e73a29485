"""Bytes held by one device, item by item."""
