"""Orders of operations of every known schedule."""
