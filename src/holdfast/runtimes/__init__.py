"""Runtimes: ways to schedule machines. A runtime adds no meaning; it decides when and where machines run.

``local`` runs in this process, ``spark`` on Spark. ``table`` has notifications as columns for both.
"""
