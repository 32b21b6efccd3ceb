"""What a run or a robot recorded: one log, its readers and its writers."""
