"""Figures and tables of the documents, run again: one module each, listed in ``registry``."""

from .experiment import show
from .registry import chosen

__all__ = ["chosen", "show"]
