"""Posteriors of tables: mixtures of optima, linearised or with exact draws."""
