"""On Spark: files of history (``history``), files as they arrive (``live``), DataFrames (``frames``).

The publisher's broker is the data source's reader, a scope is a shuffle key.  What all three share: which
operators run (``plan``), what of a batch they want (``reading``), how it travels to shards (``pack``), and
notifications as rows (``table``).
"""
