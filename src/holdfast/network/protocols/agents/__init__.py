"""Agents: small machines beside publishers that monitor a relationship together. [Fulcrum ch. 5]

The agents inform each other how far their readings may change before they must report. An agent has no I/O:
it receives a reading of its publisher or a message of another agent, and returns messages to other agents and
reports to the subscriber. `library` lists the strategies; `host` runs agents at a broker.
"""
