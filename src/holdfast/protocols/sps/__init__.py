"""Components that live in the network: State-based Publish/Subscribe over Quad-PubSub.  [SPS, chapter 5]

subscriptions   what a query asks of publish/subscribe: topics and regions
placement       where a component, or each of its parts, goes, and what every choice costs
node            Node: a broker, an information space and the components beside it, as one machine
proxy           Proxies: what nodes do for subscribers that move
traveller       Traveller: such a subscriber, as its own device knows it
"""
