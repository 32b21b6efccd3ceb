"""The loop in which source, observers, detector, reaction and controller meet, and what it leaves."""
