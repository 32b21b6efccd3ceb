"""Pieces of the documents that the product itself does not need."""
