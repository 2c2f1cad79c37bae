"""Several fits of one model, averaged."""
