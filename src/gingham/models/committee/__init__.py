"""Several fits of one model, averaged."""

KIND = "committee"  # what the command line calls it
