"""The overlay: brokers and clients, all in one process or each at its own end of a wire."""
