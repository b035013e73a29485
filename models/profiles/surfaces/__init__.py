"""Surfaces of measured kernel times: a law with few parameters, and what it leaves."""

from .kernel import Kernel as Kernel
from .kernel import kernel_of as kernel_of
from .laws import LAWS as LAWS
