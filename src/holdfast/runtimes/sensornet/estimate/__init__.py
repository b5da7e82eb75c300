"""What a network will take, without running it: joules of each node, frames, delays, days.

    hop        one frame between neighbours: tries, who hears it, joules, time
    routes     which way a message goes, and what all its hops take
    rehearsal  what a protocol sends end to end for a reading, a turn, and nothing: no radio, no loss
    aired      the same of a protocol's own bursts, in which messages meet: on the air, for some cycles
    rates      how often each of these happens, by the history
    outlook    all of it together
    ways       the protocols beside one another
    budget     from days back to bands, rates and ways

The simulator, which runs frame by frame, is the check; of readings, and of what does not come in bursts, it
takes no part.
"""
