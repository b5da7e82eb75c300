"""The thesis' XML: whole elements, one after the other, with nothing between them. [B49, B50; §6.4]

Unknown attributes and elements are ignored. Features without a form in the thesis (leases, withdrawal, the
placement of state filters) are additional attributes, or JSON in an element with the message's name.
"""
