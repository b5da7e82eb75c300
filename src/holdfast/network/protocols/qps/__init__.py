"""Quad-PubSub: publish/subscribe by topic and place, as protocol machines. [SPS, chapter 4; F16–F49]

    area             parts of the plane, with intersection, difference and union
    tree             ScopeTree, QuadScope: the square and its quadrants; the address of each logical broker
    resolve          R and R': which part of a subscription is registered here and which below
    deployment       QpsDeployment: configuration known to every node: tree, topics, policies
    message          messages between brokers, and their size in bytes on a mote
    request          requests of clients and deliveries to them: five operations, two callbacks
    request_table    one subscriber's requests to a broker, with the latest message for each part of space
    state            the state of a node: its tables
    step             one input of a node, with helpers for both roles
    client_broker    a node's role for its publishers and subscribers
    forwarding       a node's role as logical brokers
    broker           QpsBroker: both roles, as one machine

    mapping          how nodes compare themselves for the role of a logical broker
    envelope         messages about roles; envelopes of messages on their way
    tables           a logical broker's tables as messages
    role_messaging   the roles of a physical node, and how messages reach the holder of a role
    succession       how roles move: hand-over, heartbeats, copies, failures
    physical         PhysicalNode: a node with its broker and its roles; the search for the holder of a role

Decisions that the thesis leaves open are in docs/concepts/qps.md.
"""
