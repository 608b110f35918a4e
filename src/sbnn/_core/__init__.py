"""Shared by all rooms: numbers as text, random keys, 64-bit JAX, atomic files, extras.

Imports nothing else from sbnn.
"""
