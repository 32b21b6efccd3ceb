"""A virtual UR controller: the ports of a real one, with one of our plants inside."""
