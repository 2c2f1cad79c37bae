"""Mixed memberships with Dirichlet priors (P2): BayesianCoClustering."""

KIND = "bayesian"  # what the command line calls it
ABOUT = "one checkerboard with mixed memberships and priors."
EXAMPLE = "gingham fit ratings.csv --model bayesian --axes user,movie --label rating"
