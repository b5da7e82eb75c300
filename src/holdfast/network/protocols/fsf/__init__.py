"""Correlation subscriptions over a network of nodes: filter-split-forward and four approaches to compare it
with.

[Jurca et al., Continuous Query Evaluation over Distributed Sensor Networks]
"""
