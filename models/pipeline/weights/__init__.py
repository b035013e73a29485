"""Weight gradients placed for given memory."""

from .place import PlacedWeights as PlacedWeights
from .place import place_weights as place_weights
