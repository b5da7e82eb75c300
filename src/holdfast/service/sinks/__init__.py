"""Targets of notifications. Each sink has its own position, so one that is down delays no other."""
