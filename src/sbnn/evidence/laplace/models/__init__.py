"""Models that the Laplace engine linearises: their data terms, layouts and precisions."""
