"""One emitter per target language."""
