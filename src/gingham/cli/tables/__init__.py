"""Tables in, models out, and back: what the commands share."""
