"""The study: five methods on the boxcar data, its claims, figures and page.

Imports `reports` and what is below it.
"""
