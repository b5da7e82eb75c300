"""Simulated sensor networks, described in a file or in Python: the cost of a protocol before its deployment.

    scenario    Scenario: a network, its tasks and its failures, as frozen values; its parts are in
                nodes, routing, traffic, readings, failure, and in the protocols
    direct      Direct: publishers send readings directly to the subscribers
    dds         Dds: the DDS family; conditions run on the publishers' nodes
    cbps        Cbps: a tree of brokers (spanning, mote, connection)
    qps         Qps: Quad-PubSub over geographic routing
    plugin      a routing protocol of the user
    context     the interface between a protocol and a run
    document    YAML with the position of each value; convert: from there to values; fault: errors
    conditions  a definition as machines; sink: conditions that run on the subscriber's node
    case        a scenario with all files it names, and the plan of a run with a seed
    run         check(scenario) -> SimulationCase; run(case, seed) -> RunOutcome
    account     expected and actual notifications, and the messages sent for them
    outcome     measures of a network and its subscriptions
    study       the points of a sweep, and seeds; results: intervals, tables, JSON; report/: figures and text

``run(check(Scenario(...)), seed=1)`` is one run from Python. ``collect(read(path), map)`` makes all runs of a
file. To add a protocol, implement `ProtocolNodes` in a new module and add the protocol to
`scenario.Protocol`.
"""
