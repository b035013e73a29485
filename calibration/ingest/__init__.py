"""Readers of published measurements, each with the rules by which it drops rows."""

from .read import Imported as Imported
from .read import read as read
