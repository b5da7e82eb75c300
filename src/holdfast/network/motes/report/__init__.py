"""Reports of a study for people.

page       the report: a page in Markdown, with its figures beside it
curves     each measure over the swept parameter, with 95 % intervals
timeline   the run over time
maps       energy by node, in steps of 5 % [D65]
axis       the axis of a sweep
terminal   the results as text for a terminal
style      the colours, fonts and number formats of figures
"""
