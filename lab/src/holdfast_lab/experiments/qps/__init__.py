"""Quad-PubSub beside two other ways to bring events to subscribers.

[SPS §4.4, figures 4.13 to 4.16; F83, F84]  Nodes at random in a square, one publisher on each; subscribers
want the events of one region.  CODD builds ways hop by hop, GHTD brings everything to one node.
"""
