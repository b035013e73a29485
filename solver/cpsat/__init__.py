"""The model of record: legality and memory as CP-SAT, one model a pipeline shape."""
