"""How far an event travels in a hub-and-spoke overlay.

[Fulcrum §3.4.3, Table 3-1; B1, B73, B74]  Ten trees with 640 leaves each, between 2 and 5 levels deep.
Publisher and subscriber sit at leaves, each at any with equal chance; a hop is a link between two
brokers.  The average is computed, and it is measured on a running overlay of brokers.
"""
