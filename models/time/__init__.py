"""Seconds of one training step, part by part."""
