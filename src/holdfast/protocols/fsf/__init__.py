"""Correlation subscriptions through a network of nodes: filter, split, forward; and four other ways.

[Jurca et al., Continuous Query Evaluation over Distributed Sensor Networks]
"""
