"""What is decided: spaces, rules, enumeration, optimisation, explanation."""
