"""A definition as a whole: read from text, built in Python, checked, printed. The registry has the kinds."""
