"""State filters against content filters with a validity, on real temperatures.

[State-Filters, Table II; SPS Table 3.1; S9, S10, F82]  Sixteen regions, 35 sensors, a reading every
3 min for 30 h, ten subscribers to ``temp > T`` with ten thresholds near 10 °C.  *SF* is
``[temp > T; temp <= T]`` at every sensor and again over the region.  *ECF* is the content filter
``temp > T`` at every sensor; once an event has passed it, it is deaf for 30 min.

The radio network of the paper is left out: with reliable links it changes none of these counts.
"""
