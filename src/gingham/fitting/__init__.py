"""How a posterior is found: one loop, schedules, starts, restarts, checkpoints, the shared solvers."""
