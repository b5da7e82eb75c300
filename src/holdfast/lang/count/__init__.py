"""Counts over states."""
