"""Measured efficiencies and their error bands, in three layers."""

from .laws import AttentionLaw as AttentionLaw
from .laws import GemmLaw as GemmLaw
from .laws import LinkLaw as LinkLaw
from .laws import MemoryLaw as MemoryLaw
from .laws import StackLaw as StackLaw
from .layer import Layer as Layer
from .layer_file import read_layer as read_layer
from .load import layer_names as layer_names
from .load import load_layer as load_layer
from .load import load_profile as load_profile
from .load import profile_names as profile_names
from .load import profile_of as profile_of
from .profile import Profile as Profile
from .profile import assemble as assemble
from .stacks import check_stack as check_stack
from .stacks import family_of as family_of
from .stacks import fitting_stacks as fitting_stacks
from .stacks import profile_for as profile_for
from .stacks import stack_profile as stack_profile
