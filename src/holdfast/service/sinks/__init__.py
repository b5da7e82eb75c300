"""Sinks: connections by which notifications reach their targets.

Each sink has its own stored position, so a target that is down delays no other. The protocol is in ``sink``;
``delivery`` retries and stores positions. Create a new kind of sink in ``serve.sinks_of``.
"""
