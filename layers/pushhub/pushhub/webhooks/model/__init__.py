"""Rules of webhooks: ids, secrets, who gets a message. Pure."""
