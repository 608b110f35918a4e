"""What the scripts of a report need: the network, the inputs, the rows and curves, as plain values.

Imports `reports.columns`, `reports.fit` and what is below `reports`.
"""
