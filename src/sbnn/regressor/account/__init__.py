"""What a fit says about its predictor: weights used, relevance of inputs, a formula, warnings."""

from __future__ import annotations
