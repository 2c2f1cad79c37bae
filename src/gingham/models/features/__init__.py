"""Clusters that generalise to unobserved features (P4): InformationClustering."""

KIND = "information"  # what the command line calls it
ABOUT = "clusters of instances that tell about features not seen yet."
EXAMPLE = "gingham fit answers.csv --model information --axes person,question --label answer --holdout .3"
