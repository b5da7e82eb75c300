"""What the documents say and how fast we are, measured again; ``holdfast`` finds it by entry point."""
