"""Published training runs: rows of a table, and the problem and layout each states.

``read`` takes the table, ``setting`` turns one row into what is planned elsewhere, by
the named rules of ``rules``.
"""

from .measured import Measured as Measured
from .measured import measured as measured
from .row import Row as Row
from .row import read as read
from .rules import EXCLUSIONS as EXCLUSIONS
from .rules import INFERENCES as INFERENCES
from .rules import OUT_OF_SCOPE as OUT_OF_SCOPE
from .rules import Unstated as Unstated
from .setting import Setting as Setting
from .setting import setting as setting
from .table import Entry as Entry
from .table import entries as entries
