"""Pipeline schedules: orders of operations, simulation, bounds."""
