"""Pictures as lines of pixels: reading, edges, line art, skeletons and their tracing."""
