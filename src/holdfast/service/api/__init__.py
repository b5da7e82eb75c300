"""The service over HTTP: access control, routes, and answers."""
