"""Routing protocols with one interface: ``send(destination, type, message)``, ``register_handler(type, peek,
…)``.

    datagram     Datagram, and the inputs and effects of a routing machine
    router       Router: runs a machine on a node; implements host.RoutingService [F19, F20]
    ledger       MessageLedger: the outcome of every message
    flooding     Flooding: every node repeats every datagram once
    grid         the rules of ID-based routing on a grid, as functions [D52, D53]
    static       Static: ID-based routing without retries
    overhear     IdGrid: ID-based routing with retries, based on overhearing [D54]
    plane        greedy steps, planar graphs, walks around a face, as functions
    spreading    delivery to every node of a rectangle
    geographic   Geographic: greedy, with walks around holes; also to a point or a rectangle
    ondemand     OnDemand: requests, replies, errors, sequence numbers (as in DYMO)
    tree         Tree: to one or more sinks, by transmissions or hops (as in CTP)
    neighbours   beacons, and the share of them that arrives
    tempo        waiting times, derived from the speed of the network

A protocol is a frozen value with ``handle(state, input) -> (state, effects)``. It reads no clock and draws no
global random number, so it also runs without radios. ``Router(node, Tree(sinks=(0,)), ledger)`` runs it on a
node. Messages to ``BROADCAST`` are flooded; ``Flooding(limit=1)`` restricts them to the neighbours.
"""
