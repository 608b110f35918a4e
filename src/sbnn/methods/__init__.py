"""The five methods, one module each, and the `Result` they return.

Imports `evidence` and the rooms below it.
"""
