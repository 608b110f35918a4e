"""One module per command. Heavy imports are inside the functions, so that `--help` is quick.

Imports everything except `cli.app`, which imports the commands.
"""
