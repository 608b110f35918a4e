"""Particles and the log evidence of any target: tempering, moves, checkpoints, workers.

Imports `problems` and the rooms below it.
"""
