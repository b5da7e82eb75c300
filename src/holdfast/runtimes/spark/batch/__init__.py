"""Histories: files are read once, compacted where they are read, and processed in shards."""
