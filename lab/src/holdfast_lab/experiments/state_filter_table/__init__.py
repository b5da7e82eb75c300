"""State filters compared with content filters with a validity, on real temperatures.

[State-Filters, Table II; SPS Table 3.1; S9, S10, F82] There are sixteen regions with 35 sensors, and a
reading every 3 min for 30 h. Ten subscribers want ``temp > T`` with ten thresholds near 10 °C. *SF* is
``[temp > T; temp <= T]`` at every sensor and again over the region. *ECF* is the content filter ``temp > T``
at every sensor, which drops matches for 30 min after each event that passed.

The radio network of the paper is left out, since with reliable links it does not change the counts.
"""
