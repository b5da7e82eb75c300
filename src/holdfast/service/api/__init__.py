"""The HTTP interface of the service.

``app`` assembles it, ``guard`` checks each request, ``access`` has users and roles, and ``present``,
``past``, ``readings`` and ``definition`` have the routes. Add a route to one of the last four modules.
"""
