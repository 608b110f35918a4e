"""Fitted models for other programs: a Python file that needs NumPy only, ONNX, and JSON.

Imports `methods`, `tables` and the rooms below them. `contents` collects what predictions need,
`portable` is the code of the Python file, `graph` builds the ONNX model.
"""
