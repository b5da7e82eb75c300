"""Components that run in a network: their placement, and its cost. [SPS §5.7]"""
