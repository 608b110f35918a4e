"""Reports on a fit: folder, scores on unseen rows, verdict, figures, page.

Imports `regressor` and the rooms below it.
"""
