"""Evaluation of State Maintenance Components: conditions that fuse topics over time and space.

`component` and the modules below it (`smc`, `query`, `infospace`, `knowledge`, `aggregate`) define the
meaning, one requirement after the other, and evaluate a component instant by instant.

`columns` computes the same for many instants at once: a `series` holds the readings of a query, `candidates`
finds the instants at which predicates may be satisfied, and `event_rows` or `candidate_walk` emit the events.
"""
