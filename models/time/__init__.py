"""Seconds of one training step, part by part."""

from .flops import model_flops as model_flops
from .model import TimeModel as TimeModel
from .projections import Projections as Projections
from .projections import StageTimes as StageTimes
from .run import Run as Run
from .work import PARTS as PARTS
