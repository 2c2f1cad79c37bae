"""Mixed memberships with Dirichlet priors (P2): BayesianCoClustering."""

KIND = "bayesian"  # what the command line calls it
