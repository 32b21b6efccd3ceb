"""A picture drawn with a steady pen force."""
