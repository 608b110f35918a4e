"""The command line: commands, options and what the terminal shows.

Imports everything; nothing imports it.
"""
