"""The number of hops of an event in a hub-and-spoke overlay. [Fulcrum §3.4.3, Table 3-1; B1, B73, B74]

Ten trees have 640 leaves each and 2 to 5 levels. Publisher and subscriber are at leaves drawn with equal
probability. A hop is a link between two brokers. The mean is computed by a formula and measured on a running
overlay.
"""
