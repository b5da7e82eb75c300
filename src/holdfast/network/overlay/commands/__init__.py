"""The work of the overlay's commands.

serve      a broker as a process, and its statistics publish    events from lines to a broker; lines: how a
line is read subscribe  deliveries to a subscriber as lines; wanted: the syntax of content filters
"""
