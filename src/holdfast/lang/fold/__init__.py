"""Folding of storms: many siblings that hold become one."""
