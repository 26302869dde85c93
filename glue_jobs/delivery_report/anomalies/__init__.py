"""What differs from a subscriber's own past, in plain numpy on the driver; off unless it is asked for."""
