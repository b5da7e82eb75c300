"""The online energy model compared with energy that is computed after a run.

[Sensor-DDS, section 5.2, Table 9, Figures 37 and 38; D33–D39] Five publishers send 20 bytes per second each.
A rendezvous node forwards them best effort to a subscriber. Nodes are MicaZ, the run takes 120 minutes, and
one publisher is observed. The thesis compared its online model with PowerTOSSIM-z, with one run for each
duration.

Ours reads the simulator's running account during one run. The comparison uses separate runs with other seeds.
Independent code integrates their traces of states and, for the radio, the lengths of sent frames.
"""
