"""What is said about a fit: folder, scores on unseen rows, verdict, figures, page.

Imports `regressor` and what is below it.
"""
