"""Overlays in one process, without wires: for tests, experiments and people who want to see one work.

network   QueueNetwork: any protocol machines, joined by queues, in a time that passes when it is told to
brokers   Overlay: brokers and clients of the content-based family (cbps)
fsf       FsfNetwork: nodes of the filter-split-forward family, and what crosses their links
tree      what is known of links that close no circle
"""
