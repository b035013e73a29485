"""Fits of the stack and cluster layers to whole steps, device layers held fixed."""

from .factors import FACTORS as FACTORS
from .factors import Factor as Factor
from .factors import changed as changed
from .fitting import fit as fit
from .fitting import left_out as left_out
from .samples import Sample as Sample
from .samples import predict as predict
