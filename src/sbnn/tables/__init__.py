"""Tables: reading, checking and encoding CSV, TSV and Parquet files and DataFrames.

Imports `_core`. `reader.read` is the way in: `text` parses CSV and TSV, `parquet` reads Parquet,
`header` chooses columns, `column_types` says what a column holds (with `numerals` and `dates`),
`cells` says which cell does not suit its column, `inexact` which numbers may not be what the file
means. `encoder` turns columns into inputs of a network.
"""
