"""Routing behind one interface: ``send(destination, type, message)`` and ``register_handler(type, peek, …)``.

    datagram     Datagram, and the words between a routing machine and its host
    router       Router: a machine at work on a node; fulfils host.Routing [F19, F20]
    ledger       Ledger: what became of every message
    flooding     Flooding: everybody repeats everything once
    grid         the rules of ID-based routing on a grid, as functions [D52, D53]
    static       Static: those rules and nothing else; what a link loses is lost
    overhear     IdGrid: those rules, kept alive by overhearing [D54]
    plane        greedy steps, planar graphs, walks round a face, as functions
    geographic   Geographic: greedy, with perimeters round the holes; also to a point
    ondemand     OnDemand: requests, replies, errors, sequence numbers (as in DYMO)
    tree         Tree: to one or more sinks, by transmissions or hops (as in CTP)
    neighbours   beacons, and the share of them that arrives

A protocol is a frozen value with ``handle(state, input) -> (state, effects)``: it reads no clock and draws no
number, so it also runs without radios.  ``Router(node, Tree(sinks=(0,)), ledger)`` runs it on a node.
Messages to ``BROADCAST`` are flooded, ``Flooding(limit=1)`` keeps them among the neighbours.
"""
