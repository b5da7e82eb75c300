"""Correlation subscriptions over a network of nodes: filter-split-forward and four other approaches.

[Jurca et al., Continuous Query Evaluation over Distributed Sensor Networks]
"""
