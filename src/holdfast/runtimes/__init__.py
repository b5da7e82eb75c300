"""Ways to schedule machines.  A runtime adds no meaning; it decides when and where."""
