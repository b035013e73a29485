"""shardproof: exact planning of distributed LLM training."""

from shardproof.models.architecture import Architecture as Architecture
from shardproof.models.cluster import Cluster as Cluster
from shardproof.models.cluster import Device as Device
from shardproof.models.errors import InputError as InputError
from shardproof.models.layout import Layout as Layout
from shardproof.models.problem import Problem as Problem
from shardproof.models.problem import Training as Training
