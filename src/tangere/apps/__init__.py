"""Products that stand side by side and never import each other; each owns its settings, its command and its page."""
