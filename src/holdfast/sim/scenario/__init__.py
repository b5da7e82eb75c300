"""Scenarios: a YAML file, the networks it describes, their runs, and what they found.

quantity   ``2 s``, ``14 m``, ``-10 dBm``: durations, lengths, energies, powers
document   YAML that knows where each value stands
values     a scenario as frozen, typed values
convert    from a document to values; mistakes with their place
build      from values to positions, radio, MAC, routing, traffic and failures
study      points of a sweep, and seeds
run        one run: what it measures
results    many runs: intervals, tables, JSON
"""
