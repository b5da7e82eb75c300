"""What correlation subscriptions cost in a network, by six ways through it.

[Filter-Split-Forward, §VI, figures 4 to 12; J10, J11]  Readings of the Grand St. Bernard pass are replayed
over a tree of nodes; what is counted are operators and events that cross links, and what reaches users.
"""
