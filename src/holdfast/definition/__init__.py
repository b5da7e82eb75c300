"""Definitions as a whole.

``parse`` reads them from text, ``app`` builds them in Python, ``check`` checks them, ``show`` prints them and
``tune`` changes their numbers.
"""
