"""What a run answers: its tables and verdict as JSON, and one HTML page."""
