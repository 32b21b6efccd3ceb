"""What people and other programs see of Tangere: the command line, its demonstration, the benchmark."""
