"""Pull queues: messages that consumers reserve and delete, or that move on into a push queue."""
