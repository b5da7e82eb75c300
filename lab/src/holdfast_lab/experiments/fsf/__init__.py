"""The cost of correlation subscriptions in a network, by six approaches.

[Filter-Split-Forward, §VI, figures 4 to 12; J10, J11] Readings of the Grand St. Bernard pass are replayed
over a tree of nodes. The experiments count operators and events that cross links, and events that are
delivered to users.
"""
