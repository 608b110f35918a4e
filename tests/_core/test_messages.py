"""Messages: stored as code and values, worded for Python and the command line, warnings."""

from __future__ import annotations

import json
import pickle
import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning

from sbnn._core import messages as m
from sbnn.methods.last_layer import messages as last_layer
from sbnn.regressor.account.cautions import DataWarning, TableCaution
from sbnn.regressor.noise import NoiseChosen, NoiseKnown, NoiseNotCompared, NoiseRequested
from sbnn.regressor.posteriors.exact_posterior import DrawsNotMixed
from sbnn.regressor.posteriors.laplace_posterior import InputsChosen
from sbnn.regressor.running import FitStopped

SLOW = m.SamplingSlow(1, 0.8)
EXAMPLES = [
    NoiseRequested(),
    NoiseKnown(),
    NoiseChosen("varying", 12.5),
    NoiseNotCompared(),
    m.SamplingFinished(),
    SLOW,
    m.SamplingStopped(0.25, 200),
    m.SearchEnded("gradient below 1e-6", SLOW),
    m.ModeReached(),
    m.ModeNotReached(),
    m.PointsRejected(30, 900),
    m.SamplerStuck(SLOW),
    m.FirstRunStuck(m.SamplingStopped(0.25, 200)),
    m.NotVerified(1.0, -2.0, 0.1, 1.0),
    m.HyperpriorTooCoarse(("W[1][1,1]", "b[1][1]"), 4.5e-5, 1e-9),
    m.FunctionFailed(12, ("a", "b"), (0.5, -1.25), "FloatingPointError: diverged"),
    m.FreeDirections(2),
    m.OptimaNotConverged(3, 16, 200, 0.3),
    m.OptimaNotConverged(3, 16, 200, None),
    m.MethodRequested(),
    m.MethodChosen(),
    last_layer.EvidenceMaximised(),
    last_layer.EvidenceNotMaximised(),
    last_layer.Interpolated(3, 20.0, 1e-8),
    last_layer.EvidenceBound(),
    last_layer.FeaturesFitted(150, 250.0),
    InputsChosen(10, 128),
    InputsChosen(10, 2000),
    TableCaution("There are only 5 rows."),
    DrawsNotMixed(1, 3),
    FitStopped(1, 3),
]


def test_every_kind_of_message_has_an_example():
    assert {type(message) for message in EXAMPLES} == set(m._classes.values())


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: message.code)
def test_message_survives_json_and_pickle(message):
    stored = json.loads(json.dumps(message.as_json()))
    assert stored["code"] == message.code
    assert m.from_json(stored) == message
    assert pickle.loads(pickle.dumps(message)) == message


@pytest.mark.parametrize("stored", [{}, {"code": "x"}, {"code": "free_directions", "size": 1}])
def test_loading_an_invalid_message_raises(stored):
    with pytest.raises(ValueError, match="is not a stored message"):
        m.from_json(stored)


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: message.code)
def test_command_line_wording_contains_no_python_advice(message):
    text = message.for_command_line() or ""
    words = ["max_moves", "n_particles", "β", "particles", "jax", "method_options", "method="]
    assert not [word for word in words if word in text]


def test_python_and_the_command_line_get_their_own_remedies():
    stuck = m.SamplerStuck(SLOW)
    assert str(stuck).startswith("The sampler got stuck: it reached β = 1, but particles had not")
    assert "after all moves of 1 stage (correlation up to 0.80)" in str(stuck)
    assert "Raise `max_moves`" in str(stuck)
    wording = stuck.for_command_line()
    assert wording.startswith("The sampler got stuck: in 1 stage the draws still resembled")
    assert "Try another --seed" in wording
    first = m.FirstRunStuck(SLOW)
    assert "an optimum may have been missed. Try another key" in str(first)
    assert "an optimum may have been missed. Try another --seed" in first.for_command_line()
    chosen = m.MethodChosen()
    assert "method='nsbl'" in str(chosen)
    assert "--method nsbl" in chosen.for_command_line()


def test_command_line_omits_a_few_rejected_points():
    few, many = m.PointsRejected(3, 900), m.PointsRejected(30, 900)
    assert few.for_command_line() is None
    assert m.for_command_line([few, many, many]) == [str(many)]
    assert "in 3 of 900 evaluations" in str(few)


def test_changing_evidence_is_called_rough():
    assert "up to 10.0 nat" in str(m.OptimaNotConverged(1, 4, 200, 10.0))
    assert "rough" in str(m.OptimaNotConverged(1, 4, 200, 10.0))
    assert "rough" in str(m.OptimaNotConverged(1, 4, 5, None))
    assert "prun" in str(m.OptimaNotConverged(1, 4, 5, None))
    assert "prun" not in str(m.OptimaNotConverged(1, 4, 5, None, sparse=False))
    assert "rough" not in str(m.OptimaNotConverged(1, 4, 200, 0.5))
    assert "less than 0.1 nat" in str(m.OptimaNotConverged(1, 4, 200, 0.01))


def test_only_convergence_and_failure_messages_are_warnings():
    expected = {
        m.SamplerStuck: ConvergenceWarning,
        m.FirstRunStuck: ConvergenceWarning,
        m.NotVerified: ConvergenceWarning,
        m.OptimaNotConverged: ConvergenceWarning,
        m.ModeNotReached: ConvergenceWarning,
        m.FunctionFailed: RuntimeWarning,
        last_layer.EvidenceNotMaximised: ConvergenceWarning,
        last_layer.Interpolated: ConvergenceWarning,
        TableCaution: DataWarning,
        FitStopped: ConvergenceWarning,
    }
    for message in EXAMPLES:
        assert message.category is expected.get(type(message))


def test_warning_carries_its_message():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        m.warn(EXAMPLES, stacklevel=1)
        warnings.warn("from elsewhere", stacklevel=1)
    *ours, other = caught
    assert [m.caught(w.message) for w in ours] == [e for e in EXAMPLES if e.category is not None]
    assert [str(w.message) for w in ours] == [str(m.caught(w.message)) for w in ours]
    assert all(w.filename == __file__ for w in ours)
    assert m.caught(other.message) is None
