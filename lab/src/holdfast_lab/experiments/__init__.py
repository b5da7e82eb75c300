"""Figures and tables of the documents, run again: one module each, listed in ``registry``."""

from .experiment import show
from .registry import find_experiments
from .study import on_engine

__all__ = ["find_experiments", "on_engine", "show"]
