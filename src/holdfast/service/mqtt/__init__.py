"""MQTT: the address of a broker (``broker``), packets as bytes (``packets``), and a client
(``subscriber``).
"""
