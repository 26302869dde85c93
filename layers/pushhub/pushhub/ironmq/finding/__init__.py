"""Finding: what a project holds, by value, in time, and at one look."""
