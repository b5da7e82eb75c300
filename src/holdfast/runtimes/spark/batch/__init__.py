"""Replay of histories on Spark: files are read once, compacted where they are read, and processed in
shards.
"""
