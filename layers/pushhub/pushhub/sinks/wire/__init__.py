"""A kind of subscriber in each module: how its service is called, and how it answers."""
