"""Sources of readings. A feed submits readings and acknowledges them to its source once the log has them."""
