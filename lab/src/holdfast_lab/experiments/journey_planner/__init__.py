"""The journey planner of the thesis: it reports congestion to moving users within two junctions.

[SPS §5.9.3, Tables 5.16–5.21; F85] Four components detect congestion on real roads (Aarhus, August 2014) and
notify users nearby. They run in one process, and as parts on nodes, as the thesis places them. The run on
nodes counts messages, knowledge points and evaluations. An independent computation in pandas checks the
notifications of both.
"""
