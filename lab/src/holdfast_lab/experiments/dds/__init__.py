"""The simulations of the thesis on DDS for sensors and actuators, run again.

[Al-Roubaiey 2015, chapters 3, 4, 6, 7 and appendix B; D62–D69]

    air       the radio models of all simulations, with the reasons for them
    setups    Setup: a run on a grid as a value; the set-ups of the thesis as functions
    place     the positions of rendezvous nodes in chapters 6 and 7
    outcome   DdsOutcome: the measures of the thesis
    measure   Point, measure: one simulation and its measurements, with energy under both rest states
    study     Study: points × seeds, read as means and standard deviations
    report    Design: how an experiment is run, tabled and drawn
    rooms     real readings for state_on_mote, and what a base station knows of the rooms

There is one module for each experiment: middleware_cost, rtdds_rto, rtdds_ipi, rtdds_rate, rtdds_partial,
ifs, tinydds_modes, energy_map, eatdds_lifetime, arqos, state_on_mote and by_transition. In air_parts one part
of the radio model is changed at a time.
"""
