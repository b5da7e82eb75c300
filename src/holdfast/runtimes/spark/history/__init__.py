"""History: files are read once, reduced where they are read, and stepped through in shards."""
