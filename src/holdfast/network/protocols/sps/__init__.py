"""Components that run in the network: State-based Publish/Subscribe over Quad-PubSub. [SPS, chapter 5]

placement    where a component, or each of its parts, runs, and the cost of every choice
node         SpsNode: a broker with an information space and components, as one machine
proxy        ProxyNode: subscriptions of mobile subscribers at fixed nodes
traveller    Traveller: the device of a mobile subscriber
"""
