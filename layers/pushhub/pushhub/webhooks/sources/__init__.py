"""Sources: what other senders post, verified and taken in."""
