"""A simulated sensor network: nodes and radios, no publish/subscribe.

    clock        Clock: events ordered by (time, priority, sequence); LocalClock: a node's, which may drift
    chance       stream(seed, *names) -> random.Random: every node's chance, from one seed
    frame        Frame, BROADCAST; what becomes of a packet (Outcome) and of a signal (loss causes)
    radio        Radio: CC2420, CC1000; bit errors by modulation
    propagation  LogDistance (SINR), UnitDisk, Measured: who hears whom, how well
    medium       Medium: what is on the air, and who receives it
    transceiver  Transceiver: a node's radio
    mac/         Aloha, Csma (802.15.4), RtsCts (802.11), LowPowerListening, Tdma: values
                 Station: what they all offer, a node's link
    platforms    Platform: currents of MicaZ, TelosB, ... or from a file
    energy       Account: microseconds in each state and cause, hence joules; Rest; Battery
    node         Node: position, clock, chance, timers, energy, link
    host         Routing (what a routing protocol offers); NodeHost: a protocol machine on a node
    network      Setup -> Network: build, boot, run, kill, restart, cut, partition, drift; Totals
    trace        Trace: columns, to Parquet; integrate: energy from the trace alone
    metrics      lifetime, packets per joule, total and wasted energy, relative consumption, footprint
    topology     positions and link qualities, from files or rules
    routing/     Router: routing protocols that fulfil host.Routing (see there)
    statistics   what several runs say together

How a run is made::

    network = Network(Setup(positions=places, propagation=LogDistance(3.0), mac=Csma(), seed=1))
    def boot(node):                                  # called for every node at start and after each restart
        routing = Router(node, Flooding(), ledger)   # owns node.link
        NodeHost(node, machine, routing, size=len, deliver=record)
    network.boot(boot)
    network.at(30 * SECOND, lambda: network.kill(7))
    network.run(1000 * SECOND)
    network.totals(), network.joules()

What a routing protocol gets: ``node.id``, ``node.position``, ``node.now`` (local time), ``node.random``,
``node.after(delay, action)``, ``node.cancel(timer)``, ``node.energy.joules(now)``, and ``node.link``::

    link.send(to, payload, size, cause="", done=None)
        to: a node's number or BROADCAST; size: bytes of the payload (a UsageError if no frame holds it);
        done(outcome), later: ACKNOWLEDGED, AIRED (nobody acknowledges) or why it was dropped (frame.py)
    link.listen(received, overheard=None)
        callbacks with a Frame: source, destination, payload, size, cause; leave ``overheard`` out where
        nobody needs it, since it costs every neighbour's processor (and the simulation) a task for each frame

A node that goes down loses its link, its timers (``after``, ``at``) and whatever ``boot`` made; ``done`` is
not told.  ``network.every``, ``network.at`` and ``network.clock`` are for what happens outside the nodes.
"""
