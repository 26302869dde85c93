"""Applications, their event types, their portals, and all of it as one document."""
