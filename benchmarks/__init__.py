"""How good it is: validation and speed, each a command."""
