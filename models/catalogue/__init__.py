"""Architectures, devices and clusters by name, and readers of users' files.

Names are lower case with dashes. ``model`` and ``cluster`` take what a user writes:
a name, a file, or for clusters ``NODESxGPUS:DEVICE``.
"""

from .architectures import Published as Published
from .exchange import add as add
from .exchange import to_yaml as to_yaml
from .lookup import architecture as architecture
from .lookup import device as device
from .lookup import fabric as fabric
from .lookup import published as published
from .store import KINDS as KINDS
from .store import Kind as Kind
from .store import home as home
from .store import names as names
from .written import cluster as cluster
from .written import model as model
