"""The study: five methods on the boxcar data, its claims, figures and page.

Imports `reports` and the rooms below it.
"""
