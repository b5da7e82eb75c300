"""What people write in place of ``state Warm on Temperature [value > 25; value < 22] per source``.

Each peer is a module with a function from a folder of Parquet files (time, source, value) to a
folder of Parquet files (time, source, status), and says what it is in its first line.
"""
