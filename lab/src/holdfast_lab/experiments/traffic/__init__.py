"""Routes that become slow, watched by observers at the sensors and a mediator each.  [Fulcrum §7.2]

The document reads 323 loop detectors of San Diego for 28 hours, once a minute.  Ours are road sensors of
Aarhus, once in five minutes; routes are drawn on their road graph.
"""
