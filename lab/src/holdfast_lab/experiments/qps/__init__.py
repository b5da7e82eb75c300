"""Quad-PubSub compared with two other ways to bring events to subscribers.

[SPS §4.4, figures 4.13 to 4.16; F83, F84] Nodes are at random positions in a square, with a publisher on
each. Subscribers want the events of one region. CODD builds paths hop by hop; GHTD sends everything to one
node.
"""
