"""Stages of one skeleton: layers and recomputation, chosen with a proof."""

from .plan import StagePlan as StagePlan
from .plan import best_stages as best_stages
from .result import Stages as Stages
from .result import broken_layout_rules as broken_layout_rules
from .result import counts_of as counts_of
from .result import stages_of as stages_of
from .skeleton import Skeleton as Skeleton
from .skeleton import skeleton as skeleton
