"""Feeds: connections from which the service receives readings.

A feed submits readings, and acknowledges them to its source after the log has them. The protocol is in
``feed``; add a new kind of feed as a class that follows it, and create it in ``serve.feeds_of``.
"""
