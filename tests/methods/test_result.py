"""Results: predictions, tables, the ArviZ tree, saving and loading, invalid files."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
import os
import pickle
import stat

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers import assert_within_errors, gaussian_problem, keys

import sbnn
from sbnn._core.files.digests import sealed, unsealed
from sbnn._core.messages import FunctionFailed, PointsRejected, SamplerStuck, SamplingSlow
from sbnn.evidence.relevance import prune
from sbnn.methods.details import HierarchicalDetails
from sbnn.priors import Custom, Normal

X_NEW = np.linspace(-3, 3, 7)


@pytest.fixture
def saved(small_result, tmp_path):
    path = tmp_path / "result.nc"
    small_result.save(path)
    return path


# Predictions.


def test_predictive_draws_are_the_push_forward_plus_noise(small_result):
    push, full = small_result.push_forward(X_NEW, 1000), small_result.predictive(X_NEW, 1000)
    assert push.shape == full.shape == (1000, 7)
    noise = (full - push) / 0.5
    assert_within_errors(noise.mean(axis=0), 0.0, 1 / np.sqrt(1000), "noise")
    assert_within_errors((noise**2).mean(axis=0), 1.0, np.sqrt(2 / 1000), "noise variance")


def test_predict_returns_mean_and_std_of_new_observations(small_result):
    mean, std = small_result.predict(X_NEW)
    push = small_result.push_forward(X_NEW, len(small_result.phi))
    np.testing.assert_allclose(mean, push.mean(axis=0), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(std, np.sqrt(push.var(axis=0) + 0.25), rtol=1e-10)
    truth = sbnn.datasets.boxcar().truth(X_NEW)
    assert (np.abs(mean - truth) < 4 * std).all()


def test_each_output_has_its_own_noise_level(two_output_result):
    x = np.zeros((3, 2))
    mean, std = two_output_result.predict(x)
    assert mean.shape == std.shape == (3, 2)
    assert two_output_result.push_forward(x, 10).shape == (10, 3, 2)
    assert two_output_result.predictive(x, 600).shape == (600, 3, 2)  # more than there are draws
    sigma = np.exp(two_output_result.phi[:, -2:])
    for k, truth in enumerate((0.1, 0.3)):
        assert_within_errors(sigma[:, k].mean(), truth, sigma[:, k].std(), "σ")
    push = two_output_result.push_forward(x, 500)
    np.testing.assert_allclose(std**2, push.var(axis=0) + (sigma**2).mean(axis=0), rtol=1e-9)


def test_draws_are_distinct_if_there_are_enough(small_result):
    rows = small_result._rows(len(small_result.phi), seed=1)
    assert len(set(rows)) == len(rows)
    np.testing.assert_array_equal(small_result.draws(), small_result.phi)
    np.testing.assert_array_equal(small_result.draws(5, seed=2), small_result.draws(5, seed=2))
    assert small_result.draws(5000).shape == (5000, 7)
    with pytest.raises(ValueError, match="`n` must be at least 1"):
        small_result.draws(0)


def test_inputs_of_the_wrong_width_raise(two_output_result):
    with pytest.raises(ValueError, match=r"2 column\(s\) like the training data"):
        two_output_result.predict(np.zeros((4, 3)))


def test_predict_without_a_network_raises():
    result = sbnn.standard(gaussian_problem(2)[0], key=keys(1)[0], n_particles=500)
    with pytest.raises(TypeError, match="this problem has a log-likelihood only"):
        result.predict([0.0])
    with pytest.raises(TypeError, match="needs a network problem"):
        result.posterior()


# Tables.


def test_summary_has_one_row_per_parameter(small_result):
    table = small_result.summary()
    assert isinstance(table, pd.DataFrame)
    assert tuple(table.index) == small_result.names
    # The output bias has no mirror image.
    assert table["mean"].iloc[-1] == pytest.approx(small_result.phi[:, -1].mean())
    assert table["std"].iloc[-1] == pytest.approx(small_result.phi[:, -1].std())
    learned = dataclasses.replace(
        small_result, log_alpha=np.arange(7.0), relevance=np.linspace(0, 1, 7)
    ).summary()
    np.testing.assert_array_equal(learned["log_alpha"], np.arange(7.0))
    np.testing.assert_array_equal(learned["relevance"], np.linspace(0, 1, 7))


def test_summary_counts_mirror_images_once(small_result):
    # The posterior is close to a Gaussian around each of the eight images of the mode.
    rng = np.random.default_rng(0)
    mode = small_result.modes()[0].phi
    cloud = mode + 0.1 * np.abs(mode) * rng.normal(size=(2000, 7))
    symmetry = small_result.problem.symmetry
    result = dataclasses.replace(small_result, phi=symmetry.apply_random(rng, cloud))
    found = result.summary()
    image = symmetry.expand(mode)
    best = image[np.argmin(np.abs(image - found["mean"].to_numpy()).sum(axis=1))]
    std = 0.1 * np.abs(mode)
    assert (np.abs(found["mean"] - best) < 4 * np.abs(best) * 0.1 / np.sqrt(2000)).all()
    np.testing.assert_allclose(found["std"], 0.1 * np.abs(best), rtol=4 / np.sqrt(2 * 2000))
    assert (found["2.5%"] * found["97.5%"] > 0).all()
    # Averaged over all images, as the raw draws are, every mean is zero within its error.
    raw = result.phi
    assert (np.abs(raw.mean(axis=0)) < 4 * raw.std(axis=0) / np.sqrt(2000))[:-1].all()
    assert (raw.std(axis=0)[:-1] > 5 * std[:-1]).all()


def test_summary_does_not_depend_on_the_images_drawn(small_result):
    rng, symmetry = np.random.default_rng(1), small_result.problem.symmetry
    other = dataclasses.replace(small_result, phi=symmetry.apply_random(rng, small_result.phi))
    one, two = small_result.summary(), other.summary()
    np.testing.assert_allclose(two["mean"], one["mean"], atol=1e-9)
    np.testing.assert_allclose(two["std"], one["std"], atol=1e-9)


def test_neurons_with_different_precisions_are_not_exchanged(small_result):
    phi = np.tile([1.0, 2.0, 0.3, 0.4, 1.5, 2.5, 0.1], (4, 1))
    swapped = phi[:, [1, 0, 3, 2, 5, 4, 6]]
    both = np.concatenate([phi, -swapped * [1, 1, 1, 1, 1, 1, -1]])
    alpha = np.arange(7.0)
    learned = dataclasses.replace(small_result, phi=both, log_alpha=alpha).summary()
    np.testing.assert_allclose(learned["mean"].iloc[:2], [1.5, 1.5])  # signs flipped, no more
    equal = dataclasses.replace(small_result, phi=both, log_alpha=np.zeros(7)).summary()
    assert np.ptp(np.sort(np.abs(equal["mean"].iloc[:2])) - [1.0, 2.0]) < 1e-12
    np.testing.assert_allclose(equal["std"], 0.0, atol=1e-12)


def test_datatree_follows_the_arviz_schema(small_result):
    tree = small_result.datatree()
    phi = tree["posterior/phi"]
    assert phi.dims == ("chain", "draw", "parameter")
    assert list(phi["parameter"].values) == list(small_result.names)
    assert {"sample_stats", "observed_data", "constant_data", "history"} <= set(tree.children)
    np.testing.assert_array_equal(
        tree["observed_data/y"].values[:, 0], small_result.problem.y[:, 0]
    )


def test_repr_shows_the_main_results(small_result):
    text = repr(small_result)
    assert "standard" in text
    assert "7 parameters, 1000 draws" in text
    assert f"{small_result.log_evidence:.2f}" in text
    assert "verified=False" in repr(dataclasses.replace(small_result, verified=False))
    fine = dataclasses.replace(small_result, log_evidence=-1.23456, log_evidence_error=0.0042)
    assert "-1.235 ± 0.004" in repr(fine)
    assert "-1.23 (estimate)" in repr(dataclasses.replace(fine, log_evidence_error=0.0))
    assert small_result.labels[0] == r"$W^{[1]}_{11}$"


# Saving, loading and comparing.


def test_saved_result_is_loaded_exactly(small_result, saved):
    loaded = sbnn.load(saved)
    assert small_result.equals(loaded)
    assert loaded.phi.tobytes() == small_result.phi.tobytes()
    assert loaded.log_likelihood.tobytes() == small_result.log_likelihood.tobytes()
    assert loaded.log_evidence.hex() == small_result.log_evidence.hex()
    assert loaded.log_evidence_error.hex() == small_result.log_evidence_error.hex()
    assert loaded.reason == small_result.reason
    assert loaded.settings == small_result.settings
    pd.testing.assert_frame_equal(
        loaded.history["stages"], small_result.history["stages"], check_exact=True
    )
    assert loaded.problem.fingerprint() == small_result.problem.fingerprint()
    for a, b in zip(loaded.predict(X_NEW), small_result.predict(X_NEW)):
        assert a.tobytes() == b.tobytes()
    assert len(loaded.modes(n_starts=2)) >= 1


def test_results_that_differ_by_one_bit_are_not_equal(small_result):
    """Negative control: equality can fail."""
    phi = small_result.phi.copy()
    phi[3, 2] = np.nextafter(phi[3, 2], np.inf)
    assert not small_result.equals(dataclasses.replace(small_result, phi=phi))
    other = np.nextafter(small_result.log_evidence, 0.0)
    assert not small_result.equals(dataclasses.replace(small_result, log_evidence=other))


def test_all_optional_fields_are_saved_and_loaded(two_output_result, tmp_path):
    full = dataclasses.replace(
        two_output_result,
        log_alpha=np.r_[np.nan, np.arange(7.0)],
        relevance=np.linspace(0, 1, 8),
        verified=False,
        evidence_gap=1.25,
        optima=pd.DataFrame({"log_evidence": [-1.0, -2.0], "n_steps": [3, 4]}),
        messages=(
            PointsRejected(3, 900),
            SamplerStuck(SamplingSlow(2, 0.6)),
            FunctionFailed(1, ("a",), (0.1,), "zweite Ä σ"),
        ),
        details=HierarchicalDetails(np.arange(6.0).reshape(2, 3), np.zeros((2, 5))),
        failed_phi=np.arange(8.0)[None],
        failed_errors=("zweite Ä σ",),
        settings={"n_particles": np.int64(500), "move": "auto"},
    )
    full.save(tmp_path / "full.nc")
    loaded = sbnn.load(tmp_path / "full.nc")
    assert full.equals(loaded)
    np.testing.assert_array_equal(loaded.log_alpha, full.log_alpha)
    np.testing.assert_array_equal(loaded.details.log_alpha_draws, full.details.log_alpha_draws)
    pd.testing.assert_frame_equal(loaded.failures, full.failures, check_exact=True)
    pd.testing.assert_frame_equal(loaded.optima, full.optima, check_exact=True)
    assert loaded.messages == full.messages
    assert loaded.problem.names[-1] == "log_sigma[2]"


def test_modes_without_the_users_function_raise(tmp_path):
    result = sbnn.standard(gaussian_problem(2)[0], key=keys(1)[0], n_particles=500)
    result.save(tmp_path / "model.nc")
    loaded = sbnn.load(tmp_path / "model.nc")
    assert result.equals(loaded)
    assert loaded.problem is None
    assert loaded.names == result.names
    with pytest.raises(ValueError, match="problem's function, which is not stored"):
        loaded.modes()


def line_problem(slope=2.0, priors=None, names=("a", "b"), y=(0.1, 1.9, 4.2, 5.8)):
    x, y = np.arange(4.0), np.array(y)

    def model(theta):
        return theta[0] * x * slope + theta[1]

    return sbnn.Problem.from_model(model, y, names=names, noise_std=0.5, ard=names, priors=priors)


def test_problem_passed_to_load_is_checked_and_used(tmp_path):
    options = {"n_particles": 200, "n_starts": 2, "average": False}
    result = sbnn.nsbl(line_problem(), key=keys(1)[0], **options)
    path = tmp_path / "line.nc"
    result.save(path)
    with pytest.raises(ValueError, match=r"sbnn\.load\(path, problem=problem\)"):
        sbnn.load(path).prune()
    again = sbnn.load(path, problem=line_problem())
    assert again.prune().names == result.prune().names
    np.testing.assert_array_equal(again.prune().phi, result.prune().phi)
    box = {"a": sbnn.priors.Uniform(-5.0, 5.0)}
    for other, what in (
        (line_problem(slope=2.1), "log-likelihoods of the first draws"),
        (line_problem(priors=box), "priors differ"),
        (line_problem(names=("a", "c")), "names differ"),
        (line_problem(y=(0.1, 1.9, 4.2, 5.9)), "data differ"),
    ):
        with pytest.raises(ValueError, match=f"not that of .*{what}"):
            sbnn.load(path, problem=other)
    with pytest.raises(TypeError, match=r"must be an sbnn\.Problem"):
        sbnn.load(path, problem=lambda theta: 0.0)


def test_problems_and_pruned_have_readable_reprs(small_result):
    x, y = sbnn.datasets.boxcar(n=10)
    problem = sbnn.network_problem(x, y, (3,), noise_std=0.5)
    assert repr(problem) == (
        "<sbnn problem: 1-3-1 network (tanh), 10 rows; 10 parameters, 10 of them ARD; "
        "noise std 0.5>"
    )
    assert "noise std inferred" in repr(sbnn.network_problem(x, y, (3,)))
    assert repr(line_problem()) == (
        "<sbnn problem: 2 parameters (a, b), 2 of them ARD; JAX log-likelihood>"
    )
    gamma = np.ones(problem.n_parameters)
    gamma[[1, 7]] = 0.0  # W[1][2,1] and W[2][1,2]: all weights of neuron 2
    gamma[2] = 0.45
    pruned = prune(problem, np.ones((5, 10)), gamma, 0.1)
    assert repr(pruned) == (
        "<sbnn pruned: 2 of 10 parameters removed\n"
        "  removed: W[1][2,1], W[2][1,2]\n"
        "  kept: W[1][1,1], W[1][3,1], b[1][1], b[1][2], b[1][3], W[2][1,1], W[2][1,3], b[2][1]\n"
        "  borderline: W[1][3,1] (γ = 0.45); the data hardly decide, so compare the evidence with "
        "and without\n"
        "  network: 1-2-1, 1 neuron removed>"
    )
    assert set(pruned.names) | set(pruned.kept) == set(problem.names)
    assert pruned.borderline == {"W[1][3,1]": 0.45}
    gamma[2] = 0.9
    assert "borderline" not in repr(prune(problem, np.ones((5, 10)), gamma, 0.1))


def test_network_with_a_custom_prior_is_loaded_without_its_problem(tmp_path, small_result):
    import jax

    x, y = sbnn.datasets.boxcar(n=10)
    prior = Custom(lambda t: -0.5 * t**2, lambda key, shape: jax.random.normal(key, shape))
    problem = sbnn.network_problem(x, y, (), noise_std=0.5, priors={"b": prior, "W": Normal()})
    result = sbnn.standard(problem, key=keys(1)[0], n_particles=200)
    result.save(tmp_path / "custom.nc")
    assert sbnn.load(tmp_path / "custom.nc").problem is None


def test_saving_is_atomic(small_result, tmp_path, monkeypatch):
    path = tmp_path / "result.nc"
    path.write_text("precious")

    def fails(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(xr.DataTree, "to_netcdf", fails)
    with pytest.raises(OSError, match="disk full"):
        small_result.save(path, overwrite=True)
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == ["result.nc"]


def test_save_does_not_overwrite_by_default(small_result, saved):
    before = saved.read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        small_result.save(saved)
    assert saved.read_bytes() == before


def test_overwritten_file_has_default_permissions(small_result, saved):
    small_result.save(saved, overwrite=True)
    assert stat.S_IMODE(saved.stat().st_mode) == 0o644
    assert [p.name for p in saved.parent.iterdir()] == ["result.nc"]


# Files that are not results.


def test_loading_a_missing_file_raises(tmp_path):
    with pytest.raises(FileNotFoundError, match="No file"):
        sbnn.load(tmp_path / "nothing.nc")


@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.3, 0.7, 0.99])
def test_loading_a_truncated_file_raises(saved, fraction):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(fraction * len(content))])
    with pytest.raises(ValueError, match="damaged, truncated or of another kind"):
        sbnn.load(saved)


@pytest.mark.parametrize(
    "content", [b"just some text\n", b"\x80\x04N.", b"\x89HDF\r\n\x1a\nrubbish"]
)
def test_loading_another_kind_of_file_raises(tmp_path, content):
    path = tmp_path / "foreign.nc"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a readable sbnn result"):
        sbnn.load(path)


def test_loading_a_directory_raises(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder; give a file"):
        sbnn.load(tmp_path)


def test_loading_another_netcdf_file_raises(tmp_path):
    path = tmp_path / "other.nc"
    xr.Dataset({"a": ("x", np.arange(3))}).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(ValueError, match="is a NetCDF file, but not one that sbnn wrote"):
        sbnn.load(path)


@contextlib.contextmanager
def editable(path):
    """The HDF5 file without its checksum, which is computed again at the end."""
    path.write_bytes(unsealed(path.read_bytes()))
    with h5py.File(path, "r+") as file:
        yield file
    path.write_bytes(sealed(path.read_bytes()))


def edit_metadata(path, change):
    with editable(path) as file:
        metadata = json.loads(file.attrs["sbnn"])
        change(metadata)
        file.attrs["sbnn"] = json.dumps(metadata)


def test_loading_another_format_version_raises_with_a_remedy(saved):
    with editable(saved) as file:
        file.attrs["sbnn_format"] = 99
    with pytest.raises(ValueError, match=r"has format 99.*Use the version that wrote it"):
        sbnn.load(saved)


def remove_from_file(name):
    def change(path):
        with editable(path) as file:
            del file[name]

    return change


def other_shape(path):
    tree = xr.open_datatree(path, engine="h5netcdf").load()
    tree["posterior"] = xr.DataTree(tree["posterior"].to_dataset().isel(parameter=slice(0, 3)))
    tree.close()
    path.write_bytes(sealed(bytes(tree.to_netcdf(engine="h5netcdf"))))


ALTERED = {
    "posterior": remove_from_file("posterior"),
    "log-likelihood": remove_from_file("sample_stats"),
    "data": remove_from_file("observed_data"),
    "fewer parameters": other_shape,
    "no method": lambda p: edit_metadata(p, lambda m: m.pop("method")),
    "no description": lambda p: edit_metadata(p, lambda m: m.pop("description")),
    "no description of priors": lambda p: edit_metadata(
        p, lambda m: m["description"].update(priors=None)
    ),
    "a description in text": lambda p: edit_metadata(p, lambda m: m.update(description="sizes")),
    "unknown prior": lambda p: edit_metadata(
        p, lambda m: m["description"]["priors"][0].update(kind="os.system")
    ),
    "unknown field": lambda p: edit_metadata(p, lambda m: m.update(surprise=1)),
    "unknown activation": lambda p: edit_metadata(
        p, lambda m: m["description"].update(activation="gelu")
    ),
    "other names": lambda p: edit_metadata(p, lambda m: m["description"].update(names=["a"])),
    "no key": lambda p: edit_metadata(p, lambda m: m.update(key=None)),
}


@pytest.mark.parametrize("alter", ALTERED.values(), ids=ALTERED.keys())
def test_loading_an_altered_file_raises(saved, alter):
    alter(saved)
    with pytest.raises(ValueError, match="incomplete or was altered"):
        sbnn.load(saved)


@pytest.mark.parametrize("text", ["{not json", "[]", "3"])
def test_loading_invalid_metadata_raises(saved, text):
    with editable(saved) as file:
        file.attrs["sbnn"] = text
    with pytest.raises(ValueError, match=r"not a readable|altered"):
        sbnn.load(saved)


class Bomb:
    def __reduce__(self):
        return os.system, ("touch exploded",)


@pytest.mark.parametrize(
    "message", ["text", {"code": "unknown"}, {"code": "points_rejected", "n": 3}, {"n_rejected": 3}]
)
def test_loading_an_altered_message_raises(saved, message):
    edit_metadata(saved, lambda m: m.update(messages=[message]))
    with pytest.raises(ValueError, match="incomplete or was altered"):
        sbnn.load(saved)


def test_loading_altered_details_raises(saved):
    edit_metadata(saved, lambda m: m.update(details="os.system"))
    with pytest.raises(ValueError, match="incomplete or was altered"):
        sbnn.load(saved)


def test_loading_never_runs_code(saved, monkeypatch):
    monkeypatch.chdir(saved.parent)
    code = "__import__('os').system('touch exploded')"
    failed = {"code": "function_failed", "n_failed": 1, "names": [], "theta": [], "error": code}
    edit_metadata(saved, lambda m: m.update(messages=[failed], method=code))
    with editable(saved) as file:
        file.attrs["pickled"] = np.void(pickle.dumps(Bomb()))

    def forbidden(*args, **kwargs):
        raise AssertionError("load unpickled something")

    monkeypatch.setattr(pickle, "loads", forbidden)
    monkeypatch.setattr(pickle, "load", forbidden)
    loaded = sbnn.load(saved)
    assert loaded.method == loaded.messages[0].error == code  # text stays text
    assert not (saved.parent / "exploded").exists()


def test_unpickling_would_run_code(tmp_path, monkeypatch):
    """Negative control for the test above."""
    monkeypatch.chdir(tmp_path)
    pickle.loads(pickle.dumps(Bomb()))
    assert (tmp_path / "exploded").exists()


@pytest.mark.parametrize("name", ["m.pkl", "m.h5", "m.nc.gz"])
def test_saving_with_another_extension_raises(small_result, tmp_path, name):
    with pytest.raises(ValueError, match=r"NetCDF file; give a name that ends in \.nc, not '\."):
        small_result.save(tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_file_name_without_an_extension_is_kept(small_result, tmp_path):
    small_result.save(tmp_path / "m")
    assert os.listdir(tmp_path) == ["m"]
    assert sbnn.load(tmp_path / "m").equals(small_result)


def test_saving_to_a_missing_folder_raises(small_result, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"folder '.*nowhere' does not exist; create it"):
        small_result.save(tmp_path / "nowhere" / "m.nc")


def test_any_changed_byte_is_detected(small_result, saved):
    content = saved.read_bytes()
    rng = np.random.default_rng(0)
    for place in [0, 8, len(content) - 1, len(content) - 70, *rng.integers(len(content), size=30)]:
        changed = bytearray(content)
        changed[place] ^= 1 << int(rng.integers(8))
        saved.write_bytes(changed)
        with pytest.raises(ValueError, match=r"checksum|not a readable"):
            sbnn.load(saved)


def test_file_changed_by_another_program_is_detected(saved):
    tree = xr.open_datatree(saved, engine="h5netcdf").load()
    tree.close()
    tree.to_netcdf(saved, engine="h5netcdf")
    with pytest.raises(ValueError, match="changed by another program: its checksum is missing"):
        sbnn.load(saved)


def test_file_of_an_older_format_is_explained(saved):
    saved.write_bytes(unsealed(saved.read_bytes()))
    with h5py.File(saved, "r+") as file:
        file.attrs["sbnn_format"] = np.array([3])  # as h5netcdf writes it
    with pytest.raises(ValueError, match=r"has format 3; .* Use the version that wrote it"):
        sbnn.load(saved)


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("damage", ["shortened", "changed"])
def test_damaged_file_is_reported_without_other_messages(saved, capfd, damage, checksum):
    content = saved.read_bytes() if checksum else unsealed(saved.read_bytes())
    # Byte 24 is in HDF5's superblock: h5netcdf fails halfway through opening the file.
    changed = content[:24] + bytes([content[24] ^ 8]) + content[25:]
    saved.write_bytes(content[: len(content) // 2] if damage == "shortened" else changed)
    with pytest.raises(ValueError, match=r"not a readable|checksum"):
        sbnn.load(saved)
    gc.collect()
    assert capfd.readouterr().err == ""


def test_draws_with_nan_are_an_error(saved):
    with editable(saved) as file:
        file["posterior/phi"][0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="altered: the draws contain NaN"):
        sbnn.load(saved)


def test_result_that_appears_while_saving_is_not_replaced(small_result, tmp_path, monkeypatch):
    path = tmp_path / "result.nc"
    real = xr.DataTree.to_netcdf

    def slow(*args, **kwargs):
        path.write_text("precious")
        return real(*args, **kwargs)

    monkeypatch.setattr(xr.DataTree, "to_netcdf", slow)
    with pytest.raises(FileExistsError, match=r"finished result is in .*result-2\.nc"):
        small_result.save(path)
    assert path.read_text() == "precious"
    assert sbnn.load(tmp_path / "result-2.nc").equals(small_result)
