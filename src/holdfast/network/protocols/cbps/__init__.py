"""Content-based publish/subscribe over a tree of brokers. [Fulcrum, ch. 3, 4, 6]

Start with `broker` and `client`, the two machines, and with `message`, the messages between them.
"""
