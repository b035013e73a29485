"""Many plans at once, here or on an engine that is already there."""

from .chunks import Chunk as Chunk
from .chunks import chunks_of as chunks_of
from .chunks import read_sweep as read_sweep
from .run import sweep as sweep
