"""Force control of a pen on paper."""
