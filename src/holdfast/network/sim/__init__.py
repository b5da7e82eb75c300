"""A simulated sensor network: nodes, radios and routing, without publish/subscribe.

    clock        Clock: events in order of (time, priority, sequence); LocalClock: a node's, may drift
    chance       stream(seed, *names) -> random.Random: independent random streams from one seed
    frame        Frame, BROADCAST; outcomes of packets (Outcome) and causes of lost signals
    radio        Radio: CC2420, CC1000; bit error rates by modulation
    propagation  LogDistance (SINR), UnitDisk, Measured: models of the reception of signals
    medium       Medium: the signals in transmission, and the receivers that decode them
    transceiver  Transceiver: a node's radio
    mac/         Aloha, Csma (802.15.4), RtsCts (802.11), LowPowerListening, Tdma: parameters as values
                 Station: the link of a node, with the same interface for all MACs
    platforms    Platform: currents of MicaZ, TelosB, ... or from a file
    energy       NodeEnergy: microseconds in each state and for each cause, hence joules; Rest; Battery
    node         Node: position, clock, random numbers, timers, energy, link
    host         RoutingService: the interface of routing; NodeHost: a protocol machine on a node
    network      Setup -> Network: build, boot, run, kill, restart, cut, partition, drift; Totals
    trace        Trace: columns, to Parquet; integrate: energy from the trace alone
    metrics      lifetime, packets per joule, total and wasted energy, relative consumption, footprint
    topology     positions and link qualities, from files or rules
    routing/     Router: routing protocols that implement host.RoutingService
    statistics   means and confidence intervals over several runs

A run in Python::

    network = Network(Setup(positions=places, propagation=LogDistance(3.0), mac=Csma(), seed=1))
    def boot(node):                                  # called for every node at start and after each restart
        routing = Router(node, Flooding(), ledger)   # owns node.link
        NodeHost(node, machine, routing, size=len, deliver=record)
    network.boot(boot)
    network.at(30 * SECOND, lambda: network.kill(7))
    network.run(1000 * SECOND)
    network.totals(), network.joules()

A routing protocol may use ``node.id``, ``node.position``, ``node.now`` (local time), ``node.random``,
``node.after(delay, action)``, ``node.cancel(timer)``, ``node.energy.joules(now)``, and ``node.link``::

    link.send(to, payload, size, cause="", done=None)
        to: a node's number or BROADCAST; size: bytes of the payload (a UsageError if no frame holds it);
        done(outcome), later: ACKNOWLEDGED, AIRED (sent without acknowledgement) or the cause of the drop
    link.listen(on_frame, on_overheard=None)
        callbacks with a Frame: source, destination, payload, size, cause.  ``on_overheard`` costs every
        neighbour's processor (and the simulation) one task for each frame, so pass it only if needed

A node that goes down loses its link, its timers (``after``, ``at``) and the protocols of ``boot``;
``done`` is not called.  Use ``network.every``, ``network.at`` and ``network.clock`` for actions from outside
the nodes.
"""
