"""Sentences of reports: the verdict on a fit, and how accurate it is."""
