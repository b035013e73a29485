"""Measured efficiencies and their error bands."""

from .load import load_profile as load_profile
from .load import profile_of as profile_of
from .profile import AttentionLaw as AttentionLaw
from .profile import GemmLaw as GemmLaw
from .profile import LinkLaw as LinkLaw
from .profile import MemoryLaw as MemoryLaw
from .profile import Profile as Profile
from .profile import StackLaw as StackLaw
