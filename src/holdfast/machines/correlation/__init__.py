"""Correlations: simple events that agree in time and space, one for each filter.

``machine`` has the machine; ``joint`` what correlations are and who takes part in them, ``entries`` their
matches in columns, ``arrivals`` the same for events that come one by one, ``combination`` complex events.
"""
