"""Everything that sends: protocols, the broker overlay, simulated networks and motes."""
