"""The thesis' journey planner: congestion on roads, reported to moving users within two junctions.

[SPS §5.9.3, Tables 5.16–5.21; F85]  Four components in the language detect congestion on real roads
(Aarhus, August 2014) and tell every user of it who is near.  They run twice: in one process, and cut into
parts as the thesis places them on nodes, which is where messages, knowledge and examinations are
counted.  What both say is compared with a computation in pandas that knows none of our machines.
"""
