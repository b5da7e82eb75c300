"""The service over HTTP: who may ask what, and the answers."""
