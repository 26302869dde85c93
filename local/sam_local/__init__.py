"""``sam local`` against the running stack: the template with its settings, and work for each function."""
