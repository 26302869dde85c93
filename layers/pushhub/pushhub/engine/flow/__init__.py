"""Many orders: what a run of push takes, in which order and how many at a time, and where each goes next."""
