"""``python -m shardproof.interfaces`` is ``shardproof``."""

import sys

from .cli import main

sys.exit(main())
