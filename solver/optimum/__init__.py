"""The best plan of a goal over a whole space, with the proof."""

from .answer import Found as Found
from .answer import Optimum as Optimum
from .answer import Proof as Proof
from .answer import Rival as Rival
from .goals import OBJECTIVES as OBJECTIVES
from .goals import Goal as Goal
from .goals import Limit as Limit
from .goals import Prices as Prices
from .goals import limit as limit
from .search import optimum as optimum
