"""Co-occurrence counts (P0 §4.2): CoOccurrenceClustering."""

KIND = "cooccurrence"  # what the command line calls it
