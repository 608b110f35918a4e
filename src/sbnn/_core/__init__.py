"""Numbers as text, keys, 64-bit JAX, whole files: what every room uses.

Imports nothing else of sbnn.
"""
