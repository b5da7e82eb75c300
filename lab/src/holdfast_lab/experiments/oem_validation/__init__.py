"""The online energy model against somebody who computes afterwards.

[Sensor-DDS, section 5.2, Table 9, Figures 37 and 38; D33–D39]  Five publishers, one message of 20
bytes a second each, a rendezvous node that forwards them best effort, one subscriber, MicaZ, 120 minutes;
one publisher is observed.  The thesis read its online model during one run and compared it with
PowerTOSSIM-z, which computes energy from the log of a finished run: a run of its own for each duration.

Ours is the running account of the simulator, read during one run.  The other side are separate runs with
other seeds, integrated afterwards by code that shares nothing with the account: from the trace of states,
and, for the radio, once more from the lengths of the frames that were sent.
"""
