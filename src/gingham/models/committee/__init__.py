"""Several fits of one model, averaged."""

KIND = "committee"  # what the command line calls it
ABOUT = "the average of many checkerboards; labels and probabilities."
EXAMPLE = "gingham fit ratings.csv --model committee --axes user,movie --label rating"
