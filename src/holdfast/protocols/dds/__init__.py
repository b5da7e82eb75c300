"""DDS for sensors and actuators, as protocol machines.  [Al-Roubaiey 2015; spec sensor-dds.md]

    topic        Topic, Structure, Topics: the static set, keyed, hierarchical  [D4, D5, D7]
    interest     Interest: by topic, by content, by type; what of it a sample satisfies  [D6]
    level        BEST_EFFORT, FULL, or a threshold between them  [D8, D26, D30]
    deployment   Deployment: what is compiled into every node; the hash to the rendezvous node  [D10, D15]
    message      what nodes say to one another, and how many bytes that is on a mote  [D9, D24]
    request      what an application asks for, and what it is told: the API  [D1]
    rtdds        R-DW and R-DR: BEQoS, PRQoS (Algorithm 1), FRQoS  [D16–D29]
    registry     who wants what; the newest wish of each subscriber wins
    rendezvous   the RN: forwards, forgets, and sends one ACK for all  [D11–D13, D31]
    modes        DefTDDS, BLTDDS, HyTDDS, EATDDS: who learns of a subscription, where samples go  [D40–D43]
    cluster      EATDDS: terms, energies, hand-overs, the election  [D46, D49, D51]
    eatdds       EATDDS: reports, rounds, hand-over, what happens when the RN dies  [D46–D51]
    arqos        rounds, PDR, two thresholds; NACK at 100 %  [D55–D61]
    placement    state filters on the publisher's node: only transitions travel
    ifs          interference-free scheduling  [D32]
    state        what a node remembers
    member, publisher, subscriber, broker, adapting
                 what a node does in each role, by these algorithms
    participant  Participant: all roles, as one machine

What the thesis leaves open is decided in docs/concepts/dds.md.
"""
