"""Mixed memberships with Dirichlet priors (P2): BayesianCoClustering."""
