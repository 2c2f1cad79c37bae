"""Co-occurrence counts (P0 §4.2): CoOccurrenceClustering."""

KIND = "cooccurrence"  # what the command line calls it
ABOUT = "groups of both sides by how often they occur together: words, purchases."
EXAMPLE = "gingham fit counts.csv --model cooccurrence --axes document,word --weight n"
