"""The webhooks protocol on the running stack, judged by Svix's own clients, unmodified."""
