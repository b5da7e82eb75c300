"""Simulated sensor networks, described in a file or in Python: what a protocol costs before it is deployed.

    scenario    Scenario: a network, what it has to do, and what goes wrong, as frozen values; its parts in
                nodes, routing, traffic, readings, failure, and in the protocols
    direct      Direct: readings go straight to the subscribers
    dds         Dds: the DDS family; conditions run on the publishers' nodes
    cbps        Cbps: a tree of brokers (spanning, mote, connection)
    plugin      a routing protocol of somebody's own
    family      what a protocol finds on the nodes of a run, and what a run asks of it
    document    YAML that knows where each value stands; convert: from there to values; fault: what is wrong
    conditions  a definition as machines; sink: what is evaluated on the subscriber's node
    case        a scenario with all that it takes from files, and what follows for a seed
    run         check(scenario) -> Case; run(case, seed) -> Outcome
    account     what should be told to whom, what was, and what was sent for it
    outcome     what a network and its subscriptions are judged by
    study       the points of a sweep, and seeds; results: intervals, tables, JSON; report/ for people

``run(check(Scenario(...)), seed=1)`` is one run from Python, ``collect(read(path), map)`` all of a file.
"""
