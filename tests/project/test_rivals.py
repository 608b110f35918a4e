"""The comparison with other methods: scores, data formats, resumption, missing packages, text."""

import gzip
import pickle
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import peers  # noqa: E402
import rival_data  # noqa: E402
import rival_scores  # noqa: E402
import rival_text  # noqa: E402
import rivals  # noqa: E402
import speed  # noqa: E402
from prediction import LEVELS, Prediction, gaussian, mixture_of_draws  # noqa: E402

RNG = np.random.default_rng(0)
Y = RNG.normal(size=400)
MEAN, STD = np.full(400, 0.3), np.full(400, 1.2)


def crps_of_normal(y, mean, std):
    """Gneiting and Raftery (2007), Eq. (21), with the sign of a loss."""
    z = (y - mean) / std
    return std * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))


# ------------------------------------------------------------------------------------------- scores
def test_scores_of_a_gaussian_are_those_of_the_closed_forms():
    found = rival_scores.scores_of(Y, gaussian(MEAN, STD))
    half = norm.ppf(0.975) * STD
    assert found == pytest.approx(
        {
            "rmse": np.sqrt(np.mean((Y - MEAN) ** 2)),
            "log_likelihood": norm.logpdf(Y, MEAN, STD).mean(),
            "crps": crps_of_normal(Y, MEAN, STD).mean(),
            "coverage": np.mean(np.abs(Y - MEAN) <= half),
            "width": 2 * half[0],
        },
        rel=1e-9,
    )


def test_equal_draws_of_one_gaussian_have_the_scores_of_that_gaussian():
    repeated = mixture_of_draws(np.tile(MEAN, (3, 1)), np.tile(STD, (3, 1)))
    assert rival_scores.scores_of(Y, repeated) == pytest.approx(
        rival_scores.scores_of(Y, gaussian(MEAN, STD))
    )


def test_scores_from_quantiles_approach_the_closed_forms():
    quantiles = norm.ppf(LEVELS[:, None], MEAN, STD)
    found = rival_scores.scores_of(Y, Prediction(MEAN, quantiles=quantiles))
    exact = rival_scores.scores_of(Y, gaussian(MEAN, STD))
    assert "log_likelihood" not in found
    # The midpoint rule of 100 levels has an error of about 1e-4 in the two outermost intervals.
    assert found["crps"] == pytest.approx(exact["crps"], rel=2e-3)
    for score in ("rmse", "coverage", "width"):
        assert found[score] == pytest.approx(exact[score], rel=1e-9)


def test_scores_from_draws_approach_the_closed_forms():
    draws = RNG.normal(MEAN, STD, size=(4000, 400))
    found = rival_scores.scores_of(Y, Prediction(MEAN, draws=draws))
    exact = rival_scores.scores_of(Y, gaussian(MEAN, STD))
    # 4,000 draws have relative standard errors of about 1 % for each quantile.
    assert found["crps"] == pytest.approx(exact["crps"], rel=0.01)
    assert found["width"] == pytest.approx(exact["width"], rel=0.02)


def test_points_alone_are_scored_by_their_error():
    assert rival_scores.scores_of(Y, Prediction(MEAN)).keys() == {"rmse"}


def test_quantile_levels_contain_the_ends_of_95_percent_intervals():
    assert np.isclose(LEVELS, 0.025).any()
    assert np.isclose(LEVELS, 0.975).any()


# ------------------------------------------------------------------------------------------ formats
@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The same table of six rows in both formats; rows 4 and 1 are the tests of splits 0 and 1."""
    table = np.arange(18.0).reshape(6, 3)
    index = tmp_path / "by_index"
    index.mkdir()
    np.savetxt(index / "data.txt", table)
    np.savetxt(index / "index_features.txt", [0, 1])
    np.savetxt(index / "index_target.txt", [2])
    for split, row in enumerate((4, 1)):
        np.savetxt(index / f"index_train_{split}.txt", np.delete(np.arange(6), row))
        np.savetxt(index / f"index_test_{split}.txt", [row, row])
    masks = tmp_path / "by_mask"
    masks.mkdir()
    marks = np.zeros((6, 2), dtype=int)
    marks[4, 0] = marks[1, 1] = 1
    for name, values in (("data", table), ("test_mask", marks)):
        with gzip.open(masks / f"{name}.csv.gz", "wt") as file:
            np.savetxt(file, values, delimiter=",", fmt="%g")
    (tmp_path / "boston").mkdir()
    (tmp_path / "notes.txt").write_text("not a table")
    return tmp_path


def test_both_folder_formats_give_the_same_splits(folder: Path):
    loaders = dict(rival_data.folder_tables(folder))
    assert list(loaders) == ["by_index", "by_mask"]
    tables = [load() for load in loaders.values()]
    for number in range(2):
        by_index, by_mask = (table.split(number) for table in tables)
        for a, b in zip(by_index[:2], by_mask[:2]):
            np.testing.assert_array_equal(a, b)
        assert by_mask[3] == by_index[3][0] == [14.0, 5.0][number]
        np.testing.assert_array_equal(
            rival_data.load_split(folder / "by_index", number)[0], by_index[0]
        )


def test_mask_with_another_number_of_rows_is_an_error(folder: Path):
    with gzip.open(folder / "by_mask" / "test_mask.csv.gz", "wt") as file:
        file.write("0,1\n1,0\n")
    with pytest.raises(ValueError, match=r"one row per row of data.csv.gz \(6\); it has 2"):
        rival_data.from_masks(folder / "by_mask")


def test_tables_on_which_defaults_were_chosen_are_not_listed(folder: Path):
    for name in rival_data.SEEN:
        (folder / "by_mask").rename(folder / name)
        assert name not in dict(rival_data.folder_tables(folder))
        (folder / name).rename(folder / "by_mask")
    assert not set(rival_data.SEEN) & set(rival_data.packaged_tables(sys.executable))


def test_standardised_tables_use_moments_of_the_training_part():
    x, y = RNG.normal(3, 2, size=(50, 2)), RNG.normal(5, 4, size=50)
    data = rival_data.Data("t", x, y, rival_data.random_splits(50), standardise=True)
    a, t, b, u = data.split(0)
    train, test = data.splits[0]
    np.testing.assert_allclose([a.mean(axis=0), a.std(axis=0)], [[0, 0], [1, 1]], atol=1e-12)
    np.testing.assert_allclose([t.mean(), t.std()], [0, 1], atol=1e-12)
    np.testing.assert_allclose(u * y[train].std() + y[train].mean(), y[test])
    np.testing.assert_allclose(b * x[train].std(axis=0) + x[train].mean(axis=0), x[test])


def test_random_splits_are_partitions():
    for n, n_test in ((20, 4), (499, 99), (500, 50)):
        for train, test in rival_data.random_splits(n):
            assert len(test) == n_test
            assert sorted([*train, *test]) == list(range(n))


def test_frames_lose_incomplete_rows_and_text_becomes_indicators():
    frame = pd.DataFrame({"y": [1.0, 2, 3, None], "kind": list("abca"), "id": 7})
    data = rival_data.from_frame("t", frame, "y", ("id",))
    np.testing.assert_array_equal(data.x, [[0, 0], [1, 0], [0, 1]])
    np.testing.assert_array_equal(data.y, [1, 2, 3])


def test_scikit_learn_tables_have_ten_splits():
    for name in ("diabetes", "linnerud", *rival_data.RELATED):
        data = rival_data.packaged_tables(sys.executable)[name]()
        assert len(data.splits) == 10
        assert np.isfinite(data.x).all()


# ------------------------------------------------------------------------------------------ running
@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[rivals.Job]:
    """Replaces fits by known rows; the package of `bde` is missing."""
    made: list[rivals.Job] = []

    def fit(job, data, python, timeout):
        if job.method == "bde":
            return {"missing": "No module named 'bde'", "status": "done"}
        made.append(job)
        return {"rmse": 1.0, "cpu_seconds": 2.0, "status": "done"}

    monkeypatch.setattr(rivals, "fit", fit)
    return made


def command(folder: Path, *more: str) -> list[str]:
    return [
        "--data", str(folder), "--tables", "by_index", "by_mask", "--methods", "sbnn", "gp", "bde",
        "--out", str(folder / "rivals.csv"), *more,
    ]  # fmt: skip


def test_interrupted_comparison_continues(folder: Path, fits: list, capsys):
    rivals.main(command(folder, "--splits", "1"))
    assert fits == [(t, m, 0) for t in ("by_index", "by_mask") for m in ("sbnn", "gp")]
    assert "skipped: bde (No module named 'bde')" in capsys.readouterr().out
    rivals.main(command(folder))
    assert [job.split for job in fits] == [0] * 4 + [1] * 4
    rivals.main(command(folder))
    assert len(fits) == 8
    rivals.main(command(folder, "--again", "gp"))
    assert {job.method for job in fits[8:]} == {"gp"}
    assert len(pd.read_csv(folder / "rivals.csv")) == 8


def test_each_row_is_written_at_once(folder: Path, fits: list, monkeypatch):
    def interrupted(job, *rest, fit=rivals.fit):
        if len(fits) == 3:
            raise KeyboardInterrupt
        return fit(job, *rest)

    monkeypatch.setattr(rivals, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rivals.main(command(folder))
    assert len(pd.read_csv(folder / "rivals.csv")) == 3


def test_fits_that_would_exceed_the_budget_are_left(folder: Path, fits: list, capsys):
    rivals.main(command(folder, "--splits", "1"))
    known = pd.read_csv(folder / "rivals.csv")
    known.loc[known["method"] == "gp", "cpu_seconds"] = 3600.0
    known.to_csv(folder / "rivals.csv", index=False)
    rivals.main(command(folder, "--minutes", "1"))
    assert {job.method for job in fits[4:]} == {"sbnn"}
    rivals.main(command(folder, "--plan"))
    assert "total: 120 CPU minutes" in capsys.readouterr().out


def test_method_that_was_stopped_on_a_table_is_not_started_there_again(folder: Path, fits: list):
    rows = [{"table": "by_index", "method": "gp", "split": 0, "status": "stopped after 3600 s"}]
    pd.DataFrame(rows).to_csv(folder / "rivals.csv", index=False)
    rivals.main(command(folder))
    assert not [job for job in fits if job[:2] == ("by_index", "gp")]


def test_first_splits_of_all_tables_come_before_later_splits_and_slow_methods():
    rows = [{"table": "a", "method": "bde", "split": 0, "cpu_seconds": 900.0}]
    found = rivals.jobs({"a": 10, "b": 10}, ["sbnn", "bde", "bde_long"], rivals.Costs(rows))
    first = [("sbnn", table, split) for table in "ab" for split in range(5)]
    assert [(job.method, job.table, job.split) for job in found[:10]] == first
    assert {job.method for job in found[10:]} == {"sbnn", "bde"}
    assert "bde_long" not in {job.method for job in found}


def test_unknown_table_ends_the_program(folder: Path):
    with pytest.raises(SystemExit, match="No such tables: nowhere"):
        rivals.main(["--data", str(folder), "--tables", "nowhere"])


@pytest.mark.parametrize("name", ["bayesian_ridge", "gp"])
def test_fit_in_a_fresh_process_is_scored(name: str):
    x = RNG.normal(size=(40, 2))
    data = rival_data.Data("t", x, x.sum(axis=1), rival_data.random_splits(40))
    row = rivals.fit(rivals.Job("t", name, 0), data, sys.executable, 300)
    assert row["status"] == "done"
    assert row["rmse"] < 0.1
    assert row["parameters"] in (3, 4)
    assert row["cpu_seconds"] >= 0


def test_missing_package_is_reported_by_the_process(tmp_path: Path, monkeypatch):
    (tmp_path / "treeffuser.py").write_text("raise ImportError('no such package')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    x = RNG.normal(size=(20, 2))
    data = rival_data.Data("t", x, x.sum(axis=1), rival_data.random_splits(20))
    row = rivals.fit(rivals.Job("t", "treeffuser", 0), data, sys.executable, 300)
    assert row["missing"] == "no such package"


def test_predictions_survive_the_way_between_processes():
    found = gaussian(MEAN, STD, 4, "note")
    again = pickle.loads(pickle.dumps(found))
    assert rival_scores.scores_of(Y, again) == rival_scores.scores_of(Y, found)


def test_interpreter_of_bde_is_used_for_both_of_its_settings():
    assert rivals.interpreters(["bde=/a", "treeffuser=/b"]) == {
        "bde": "/a",
        "bde_long": "/a",
        "treeffuser": "/b",
    }


# --------------------------------------------------------------------------------------------- text
def results(**better) -> pd.DataFrame:
    """Two tables, two splits: sbnn has CRPS 1, gp 2, catboost no density."""
    rows = []
    for table in ("yacht", "tips"):
        for split in range(2):
            for method, value in (("sbnn", 1.0), ("gp", 2.0), ("catboost", 3.0)):
                score = better.get(f"{method}_{table}", value)
                row = {"table": table, "method": method, "split": split, "rmse": score}
                row |= {"cpu_seconds": value, "status": "done", "width": 1.0}
                if method != "catboost":
                    row |= {"crps": score, "log_likelihood": -score, "coverage": 0.95}
                rows.append(row)
    return pd.DataFrame(rows)


def test_mean_ranks_are_averages_over_tables():
    ranks = rival_text.mean_ranks(results(gp_tips=0.5), "crps")
    assert ranks.to_dict() == {"sbnn": 1.5, "gp": 1.5}
    assert rival_text.mean_ranks(results(), "log_likelihood")["sbnn"] == 1


def with_bart(table):
    """The results with a third method, always worse than sbnn."""
    third = table[table["method"] == "sbnn"].assign(method="bart", crps=lambda t: 9 * t["crps"])
    return pd.concat([table, third])


def test_table_that_only_sbnn_has_does_not_count():
    table = results()
    alone = table[(table["method"] == "sbnn") & (table["table"] == "tips")].assign(table="airfoil")
    ranks = rival_text.mean_ranks(table, "crps")
    pd.testing.assert_series_equal(rival_text.mean_ranks(pd.concat([table, alone]), "crps"), ranks)
    assert "gp" in ranks


def test_method_that_was_not_run_on_all_tables_has_no_rank():
    table = with_bart(results())
    table = table[(table["method"] != "gp") | (table["table"] != "tips")]
    assert rival_text.mean_ranks(table, "crps").to_dict() == {"sbnn": 1, "bart": 2}
    shown = rival_text.summary(table).set_index("method")
    assert shown.loc[peers.TITLES["gp"], "sbnn better, CRPS"] == "1 of 1"


def test_related_tables_do_not_count():
    table = results(gp_tips=0.5).replace({"table": {"tips": "friedman1"}})
    assert rival_text.mean_ranks(table, "crps")["sbnn"] == 1
    assert (
        rival_text.summary(table).set_index("method").loc[peers.TITLES["gp"], "sbnn better, CRPS"]
        == "1 of 1"
    )


def test_method_with_few_splits_has_neither_rank_nor_first_place():
    table = results(gp_tips=0.5, gp_yacht=0.5)
    table = pd.concat([table, table.assign(split=table["split"] + 2)])
    table = table[(table["method"] != "gp") | (table["split"] == 0)]
    ranks = rival_text.mean_ranks(with_bart(table), "crps")
    assert ranks.to_dict() == {"sbnn": 1, "bart": 2}
    assert peers.TITLES["gp"] not in rival_text.wins_and_losses(table)


def test_table_that_only_another_method_has_leaves_ranks_as_they_are():
    table = results()
    other = table[(table["method"] == "gp") & (table["table"] == "tips")].assign(table="airfoil")
    assert rival_text.mean_ranks(pd.concat([table, other]), "crps")["sbnn"] == 1


def test_pairs_are_compared_on_common_splits():
    table = results()
    table.loc[(table["method"] == "sbnn") & (table["split"] == 1), "crps"] = 100.0
    only = table[(table["method"] == "sbnn") | (table["split"] == 0)]
    assert (rival_text.paired(only, "gp", "crps")["ours"] == 1.0).all()


def test_losses_are_named():
    text = rival_text.wins_and_losses(results(gp_tips=0.5))
    gp = peers.TITLES["gp"]
    assert f"CRPS: sbnn is best on 1 of 2 tables; best elsewhere: tips ({gp})." in text
    assert "sbnn is best on 2 of 2 tables." in rival_text.wins_and_losses(results())


def test_section_has_blocks_further_tables_and_the_tables_left_out():
    text = rival_text.comparison(results(gp_tips=0.5))
    assert "### Yacht" in text
    assert "| tips | 1 | 95 % | 0.5 |" in text
    assert "Boston" in text
    assert "| 2.0 | 2 |" in text  # CPU seconds and splits of gp


def test_readme_has_scores_ranks_and_published_numbers():
    others = pd.DataFrame(
        {"table": ["yacht"], "method": "TabPFN", "rmse": 0.417, "log_likelihood": 0.731}
    )
    text = rival_text.readme_text(results(), others)
    assert "| **sbnn** | 1.00 / −1.00 | 1 | 1 | 95 % |" in text
    assert "| CatBoost | 3.00 / – | – | – | – |" in text
    assert "over 2 tables" in text
    assert "Published for TabPFN, not run here: yacht 0.42 / 0.73." in text


def test_text_says_which_fits_shared_a_process():
    shared = "shared one process"
    table = results()
    assert shared not in rival_text.comparison(table.assign(load=0.5))
    table["load"] = np.where(table["method"] == "gp", np.nan, 0.5)
    assert f"4 older fits to tips, yacht, which {shared}" in rival_text.comparison(table)


def test_readme_has_only_methods_with_all_splits():
    table = results()
    table = table[(table["method"] != "gp") | (table["split"] == 0)]
    text = rival_text.readme_text(table)
    assert "yacht (2 splits)" in text
    assert peers.TITLES["gp"] not in text


def test_published_numbers_have_three_digits():
    others = {"table": ["power"], "method": "TabPFN", "rmse": 3.005, "log_likelihood": -2.278}
    assert "| power | TabPFN | 3.005 | −2.278 |" in rival_text.published(pd.DataFrame(others))


def test_failed_fits_are_left_out_of_the_text():
    table = results()
    failed = {"table": "yacht", "method": "gp", "split": 9, "status": "MemoryError"}
    table = pd.concat([table, pd.DataFrame([failed])])
    assert len(rival_text.done(table)) == len(table) - 1


# -------------------------------------------------------------------------------------------- speed
def test_speed_extrapolates_with_the_cube_of_the_rows_and_says_so():
    rows = [
        {"method": m, "rows": n, "columns": 2, "cpu_seconds": s, "second_cpu_seconds": s / 2}
        for m, n, s in (("sbnn", 1000, 4.0), ("sbnn", 4000, 8.0), ("gp", 1000, 10.0))
    ]
    found = speed.extrapolated(pd.DataFrame(rows)).set_index("rows")
    assert found.loc[4000, "gp"] == 640.0
    assert found["extrapolated"].tolist() == [False, True]
    assert found.loc[1000, "ratio"] == pytest.approx(0.2)
    assert "| 640 (extrapolated) |" in speed.speed(pd.DataFrame(rows))


def test_gaussian_processes_beyond_memory_and_2000_rows_are_not_run():
    assert speed.runnable("gp", 2000, 8)
    assert not speed.runnable("gp", 5000, 2)
    assert not speed.runnable("gp", 2000, 128)
    assert speed.runnable("sbnn", 10_000, 128)
