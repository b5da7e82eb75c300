"""MQTT for feeds and sinks.

``broker`` has the address of a broker, ``packets`` the encoding of packets, and ``subscriber`` a client.
"""
