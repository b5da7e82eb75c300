"""Core operations become something runnable: one event at a time, or a column at a time."""
