"""Networks in one process, for tests and experiments.

network   QueueNetwork: protocol machines joined by queues, with a simulated clock
"""
