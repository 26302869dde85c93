"""What every package may use: errors, ids, times, verdicts. Imports nothing of ours."""
