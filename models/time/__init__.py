"""Seconds of one training step, part by part."""

from .flops import model_flops as model_flops
from .model import Projections as Projections
from .model import StageTimes as StageTimes
from .model import TimeModel as TimeModel
from .work import PARTS as PARTS
