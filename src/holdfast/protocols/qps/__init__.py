"""Quad-PubSub: publish/subscribe by topic and place, as protocol machines.  [SPS, chapter 4; F16–F49]

    area         parts of the plane that can be cut and joined
    tree         Tree, Scope: the square and its quadrants; where the logical broker of each stands
    resolve      R and R': what is registered at a broker, and what a broker below it gets
    deployment   Deployment: what every node knows: tree, topics, policies
    message      what brokers say to one another, and how many bytes that is on a mote
    request      what clients ask for and are told: five operations, two callbacks
    wishes       what one subscriber wants of a broker; the latest word on each part of space counts
    state        what a node remembers: its tables
    hosting      a node for its publishers and subscribers
    forwarding   a node as logical brokers
    broker       Broker: all of it, as one machine

    mapping      how nodes compare themselves for the role of a logical broker
    envelope     what they say to one another about that; messages on their way
    tables       a logical broker's tables as the messages that made them
    physical     Physical: a node with its broker and its roles; the search for who has which
    succession   how a role comes to a node and leaves it: hand-over, heartbeats, copies, failures

What the thesis leaves open is decided in docs/concepts/qps.md.
"""
