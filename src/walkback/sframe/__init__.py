"""The SFrame format."""
