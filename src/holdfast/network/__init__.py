"""Publish/subscribe in networks: protocols, brokers and clients, simulated sensor networks, and cost
estimates.

- `protocols`: the protocol machines, which need no network to run.
- `overlay`: brokers and clients on the Internet.
- `sim`: simulated nodes, radios and routing.
- `motes`: simulations of the protocols on sensor nodes.
- `estimate`: the cost of a network without a simulation.
"""
