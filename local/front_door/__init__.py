"""The base URL of the local stack, for requests and for consumers' connections."""
