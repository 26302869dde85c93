"""Projects, their tokens and quotas, and copies of what their owners have set."""
