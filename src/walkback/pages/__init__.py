"""Self-contained pages of HTML."""
