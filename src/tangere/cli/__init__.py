"""The command line: it shows and connects apps, and computes nothing."""
