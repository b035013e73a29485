"""Memory of a layout: the ledger of tensors and the peak of every pipeline rank."""

from .kernels import Kernels as Kernels
from .ledger import Item as Item
from .model import MemoryModel as MemoryModel
from .optimizers import RECIPES as RECIPES
from .optimizers import Recipe as Recipe
