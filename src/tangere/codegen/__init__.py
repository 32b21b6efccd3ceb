"""One source for every kernel: algorithms are traced into a graph and printed as C or as Python."""
