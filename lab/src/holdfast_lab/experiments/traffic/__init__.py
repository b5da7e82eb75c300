"""Slow routes, monitored by observers at the sensors and a mediator for each route. [Fulcrum §7.2]

The document uses 323 loop detectors of San Diego for 28 hours, with a reading each minute. We use road
sensors of Aarhus with a reading every five minutes, and routes drawn on their road graph.
"""
