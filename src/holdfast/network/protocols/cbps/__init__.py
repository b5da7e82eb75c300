"""Content-based publish/subscribe over a tree of brokers.  [Fulcrum, ch. 3, 4, 6]"""
