"""Touch on logs: the commands excite, identify, tune and watch, and their pages."""
