"""Execution of shipped code.

worker    the process in which the code runs; this file is the only code of Holdfast in the process
pool      the processes of a broker
signing   signatures of shipped code
"""
