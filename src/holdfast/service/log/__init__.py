"""The log: readings on disk, before they are acknowledged.

``wal/`` contains segments to which entries are appended. A segment that is full and older than a snapshot
becomes Parquet files in ``readings/``, which ``holdfast replay`` and ``holdfast run`` can read.

``log`` appends and reads entries, ``frame`` encodes them, ``seal`` writes Parquet, ``damage`` finds losses.
"""
