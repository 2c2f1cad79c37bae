"""Co-occurrence counts (P0 §4.2): CoOccurrenceClustering."""
