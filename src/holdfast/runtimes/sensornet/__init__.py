"""The DDS family on simulated motes.

    scenario   Scenario: everything that a run depends on, in one frozen value
    setups     the set-ups of the thesis as functions that make scenarios  [D67–D69]
    conditions on_motes(definition): conditions as machines for publishers' nodes
    account    Account: what became of every sample, and when subscriptions were known
    outcome    Outcome: the measures of the thesis  [D44, D45, D63, D64]; spread over runs  [D66]
    run        run(scenario) -> Outcome; repeat(make, runs) -> ten of them

``run(modes("HyTDDS", ipi=2 * SECOND, seed=1)).pdr`` is the delivery ratio of chapter 6's network.
"""
