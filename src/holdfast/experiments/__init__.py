"""Figures and tables of the documents, run again: one module each, listed in ``registry``."""
