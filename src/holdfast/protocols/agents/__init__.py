"""Agents: small machines beside publishers that watch a relationship, and tell one another how long they may
be silent.  [Fulcrum ch. 5]

An agent is pure: it is given a reading of its own publisher, or what another agent says, and answers with
what is to be said to others and what is to be reported to the subscriber.
"""
