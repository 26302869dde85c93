"""Messages on their way: listened for, replayed, moved to another server, their signatures checked."""
