"""Fits of whole-rank peaks: few constants, and bands of models that were left out."""

from .fit import Point as Point
from .fit import fit as fit
from .fit import ratios_left_out as ratios_left_out
