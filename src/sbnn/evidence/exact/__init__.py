"""The exact log evidence as a function of α, from particles."""
