"""Tables: reading and checking CSV, TSV and Parquet files and DataFrames.

Imports `_core`.
"""
