"""Estimates of a network without a frame-by-frame simulation: energy of each node, frames, delays, lifetime.

    hop         one frame between neighbours: tries, receivers, joules, time
    routes      the path of a message, and the cost of all its hops
    rehearsal   the messages that a protocol sends end to end, with and without readings; no radio, no loss;
                bursts of traffic without readings are simulated for a few cycles
    rates       how often each kind of reading occurs in a history
    forecast    the combination of all estimates
    strategies  the comparison of the protocols
    budget      from a required lifetime back to bands, rates and strategies

The frame-by-frame simulator verifies these estimates. It is too slow for the readings of months.
"""
