"""The only compiled code: `project`, on which soft solvers run, and `sweep`, on which hard moves run."""
