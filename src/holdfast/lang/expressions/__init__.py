"""Back ends that evaluate expressions: on one event, on a batch, in SQL."""
