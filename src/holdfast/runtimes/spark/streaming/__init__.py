"""Live: files as they arrive, states that Spark keeps, notifications each once."""
