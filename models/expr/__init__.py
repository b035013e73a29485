"""Integer expressions over axes: one definition, several interpreters."""
