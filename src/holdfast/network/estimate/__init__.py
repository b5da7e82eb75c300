"""Estimates of a network without running it frame by frame: joules of each node, frames, delays, lifetime.

    hop         one frame between neighbours: tries, receivers, joules, time
    routes      the path of a message, and the cost of all its hops
    rehearsal   the messages a protocol sends end to end for a reading and without one: no radio, no loss;
                traffic without readings that comes in bursts is simulated for some cycles
    rates       how often each kind of reading comes, from a history
    forecast    all of it together
    strategies  the protocols compared with one another
    budget      from a lifetime back to bands, rates and strategies

The frame-by-frame simulator checks these estimates; it is not used for readings, nor for traffic without
bursts.
"""
