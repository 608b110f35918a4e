"""Tables: reading and checking CSV, TSV and Parquet files and DataFrames.

Imports `_core`. `reader.read` is the way in: `text` parses CSV and TSV, `parquet` reads Parquet,
`header` chooses columns, `cells` turns text into numbers or says which cell is not one, `inexact`
says which numbers may not be what the file means.
"""
