"""Peak bytes in plain integers, written from docs/memory.md and from nothing else."""

from .peak import Peaks as Peaks
from .run import Config as Config
from .state import RECIPES as RECIPES
