"""Re-checking a saved answer with code that knows no solver and no expressions."""
