"""DDS for sensors and actuators, as protocol machines.  [Al-Roubaiey 2015]

    topic        DdsTopic, SampleType, TopicSet: the static set, keyed, hierarchical  [D4, D5, D7]
    interest     Interest: by topic, by content, by type; the test of a sample  [D6]
    level        BEST_EFFORT, FULL, or a threshold between them  [D8, D26, D30]
    deployment   configuration compiled into every node; the hash to the rendezvous node  [D10, D15]
    message      messages between nodes, and their size in bytes on a mote  [D9, D24]
    request      requests of an application and the answers to it: the API  [D1]
    rtdds        R-DW and R-DR: BEQoS, PRQoS (Algorithm 1), FRQoS  [D16–D29]
    registry     the table of subscriptions; the newest version of each counts
    rendezvous   the RN: forwards, forgets, and sends one ACK for all  [D11–D13, D31]
    modes        DefTDDS, BLTDDS, HyTDDS, EATDDS: routes of subscriptions and samples  [D40–D43]
    cluster      EATDDS: terms, energies, hand-overs, the election  [D46, D49, D51]
    eatdds       EATDDS: reports, rounds, hand-over, failure of the RN  [D46–D51]
    arqos        rounds, PDR, two thresholds; NACK at 100 %  [D55–D61]
    placement    state filters on the publisher's node: only transitions are sent
    ifs          interference-free scheduling  [D32]
    state        the state of a node
    step         one input of a node, with helpers for all roles
    publisher, subscriber, broker, adaptive
                 the roles of a node, which use these algorithms
    participant  DdsParticipant: all roles, as one machine

Decisions that the thesis leaves open are in docs/concepts/dds.md.
"""
