"""Components that live in a network: where they stand, and what that costs.  [SPS §5.7]"""
