"""The implementation of the overlay's commands.

serve            a broker as a process, and the inquiry of its statistics
publish          send events from lines to a broker
lines            read a line as an event
subscribe        write deliveries to a subscriber as lines
content_filter   the syntax of content filters
agent_requests   relationships that agents monitor for a subscriber
"""
