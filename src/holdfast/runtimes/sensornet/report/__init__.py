"""What a study found, for people.

page       the report: a page in Markdown, with its figures beside it
curves     each measure over the swept parameter, with 95 % intervals
timeline   what happened when
maps       where the energy went, in steps of 5 % [D65]
axis       what stands along the axis of a sweep
style      how all figures look
"""
