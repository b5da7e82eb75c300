"""Execution of shipped code.

worker    the process in which it runs; this file is the only code of Holdfast in it
pool      the processes of a broker
signing   signatures of shipped code
"""
