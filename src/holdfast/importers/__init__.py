"""Rules of other systems become definitions: what maps is translated, what does not is said."""
