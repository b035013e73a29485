"""The digest of a saved document, which shows that nobody changed it by hand."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def digest(document: dict[str, Any]) -> str:
    """Return the SHA-256 of a document without its own digest."""
    content = {name: value for name, value in document.items() if name != "digest"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
