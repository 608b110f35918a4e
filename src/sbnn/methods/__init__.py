"""The five methods (modules with a leading underscore) and the `Result` they return.

Imports `evidence` and the rooms below it.
"""
