"""Where things lie, how they are read and written, and tables of which each day is replaced in one step."""
