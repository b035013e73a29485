"""Explanations: conflicts and corrections of a request, and one layout's faults."""

from .explanation import explain as explain
from .explanation import explain_request as explain_request
from .limits import Limit as Limit
from .limits import Request as Request
from .limits import lift as lift
from .search import MEMORY as MEMORY
