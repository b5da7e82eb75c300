"""Code that others have sent, at work.

worker    the process in which it runs: this file is all of ours that is in there
pool      the processes of a broker, and what becomes of them
"""
