"""Figures and tables of the documents, run again: one module each, listed in ``registry``."""

from .experiment import show
from .registry import chosen
from .study import on_engine

__all__ = ["chosen", "on_engine", "show"]
