"""The thesis' XML: whole elements, one after the other, with nothing between them.  [B49, B50; §6.4]

Unknown attributes and elements are ignored.  What the thesis has no form for (leases, withdrawal, the
placement of state filters) is an attribute more, or JSON in an element with the message's name.
"""
