"""Experiments that reproduce figures and tables of the research documents. Each has a module or package;
`registry` lists them.
"""
