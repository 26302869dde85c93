"""Streams: events that are kept in order, and the sinks that read them."""
