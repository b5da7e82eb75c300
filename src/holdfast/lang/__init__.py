"""Text and Python builders make one closed set of operations; nothing here knows who runs them."""
