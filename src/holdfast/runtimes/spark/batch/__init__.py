"""Replay of histories on Spark.

Files are read once, compacted where they are read, and processed in shards. ``replay`` has the entry point.
"""
