"""The simulations of the thesis on DDS for sensors and actuators, run again.

[Al-Roubaiey 2015, chapters 3, 4, 6, 7 and appendix B; D62–D69]

    air       the radio of all simulations, with the reasons for it
    setups    Setup: a run on a grid as a value; the set-ups of the thesis as functions that make them
    place     where rendezvous nodes stand in chapters 6 and 7
    outcome   Outcome: the measures of the thesis
    measure   Point, measure: one simulation, what is kept of it, joules under both rest states
    study     points × seeds, read as means and standard deviations
    report    Design -> Experiment: how all are run, tabled and drawn
    rooms     real readings for state_on_mote, and what a base station believes

One module for each experiment: middleware_cost, rtdds_rto, rtdds_ipi, rtdds_rate, rtdds_partial, ifs,
tinydds_modes, energy_map, eatdds_lifetime, arqos, state_on_mote, by_transition; air_parts switches the parts
of the air.
"""
