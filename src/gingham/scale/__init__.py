"""More tuples than one process holds: dask clusters, and partitions streamed from disk."""
