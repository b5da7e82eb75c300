"""Evaluation of State Maintenance Components: conditions that fuse topics over time and space.

`component` and the modules that it uses (`smc`, `query`, `infospace`, `knowledge`, `aggregate`) define the
meaning of a component. They evaluate a component instant by instant.

`columns` computes the same events for many instants at once. A `series` stores the readings of a query,
`candidates` finds the instants at which predicates may be satisfied, and `event_rows` or `candidate_walk`
emits the events. A change of the meaning needs both evaluations; tests compare them.
"""
