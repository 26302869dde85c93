"""One delivery: whether an attempt may be made now, the attempt, its outcome, and what is told of it."""
