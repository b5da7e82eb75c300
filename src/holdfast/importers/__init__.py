"""Translate alerting rules of other systems to definitions, with a note for each part that has no
equivalent."""
