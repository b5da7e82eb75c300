"""Readings on disk, before they are acknowledged.

``wal/`` holds segments to which entries are appended; a segment that is full and that a snapshot stands
after becomes Parquet files in ``readings/``, which ``holdfast replay`` and ``holdfast run`` read.
"""
