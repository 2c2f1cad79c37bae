"""What is guaranteed: how far the loss of a co-clustering on new data can be from what was observed."""
