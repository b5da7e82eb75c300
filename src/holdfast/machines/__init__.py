"""Condition machines: pure functions from a state and events to a state and transitions.

They receive predicates and scopes as plain functions and know neither the language nor a host.
"""
