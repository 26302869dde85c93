"""From a producer's message to work orders: stored in one write, dispatched from the stream."""
