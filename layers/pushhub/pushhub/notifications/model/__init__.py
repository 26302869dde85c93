"""Topics, backlogs and subscriptions as plain data and pure functions."""
