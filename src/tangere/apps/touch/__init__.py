"""Touch on logs: the commands identify, tune and watch, and their pages."""
