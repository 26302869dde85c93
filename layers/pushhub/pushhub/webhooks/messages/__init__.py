"""Messages: posted, owed to endpoints, listed, polled, found, and what was attempted for them."""
