"""Fronts: the configurations that no other one beats in every objective."""

from .complete import memory_front as memory_front
from .front import Front as Front
from .front import FrontPoint as FrontPoint
from .objectives import OBJECTIVES as OBJECTIVES
from .sizes import front_over_sizes as front_over_sizes
