"""What stands around a simulated arm."""
