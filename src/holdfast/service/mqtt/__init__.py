"""MQTT: the address of a broker, packets as bytes, and a subscriber that acknowledges by hand."""
