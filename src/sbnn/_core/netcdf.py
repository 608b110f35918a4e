"""NetCDF files of saved objects: written atomically, checked when read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sbnn._core.atomic import whole_file

if TYPE_CHECKING:
    import xarray as xr

FORMAT = 3


def write_tree(tree: xr.DataTree, path: str | os.PathLike, overwrite: bool) -> None:
    """Write one NetCDF file atomically.

    Parameters
    ----------
    tree : DataTree
    path : path
        With the suffix .nc, or without a suffix.
    overwrite : bool
        Replace an existing file.

    Raises
    ------
    ValueError
        If the name has another suffix.
    FileNotFoundError
        If the folder does not exist.
    FileExistsError
        If the file exists and `overwrite` is False.
    """
    path = Path(path)
    if path.suffix.lower() not in (".nc", ""):
        raise ValueError(
            f"{str(path)!r} would be a NetCDF file; give a name that ends in .nc, not "
            f"{path.suffix!r}."
        )
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"The folder {str(path.parent)!r} does not exist; create it first.")
    if path.exists() and not overwrite:
        raise FileExistsError(
            f"{str(path)!r} exists; use another name, save with overwrite=True, or delete it."
        )
    with whole_file(path) as temporary:
        tree.to_netcdf(temporary, engine="h5netcdf")


def read_tree(path: Path) -> tuple[xr.DataTree, dict[str, Any]]:
    """The tree and the metadata in a file that `write_tree` wrote; raises for any other file."""
    import xarray as xr

    if not path.exists():
        raise FileNotFoundError(f"No file {str(path)!r}.")
    if path.is_dir():
        inside = sorted(p.name for p in path.glob("*.nc"))
        hint = f"give {str(path / inside[0])!r}" if inside else "give a file that `save` wrote"
        raise IsADirectoryError(f"{str(path)!r} is a folder; {hint}.")
    try:
        with xr.open_datatree(path, engine="h5netcdf") as opened:
            tree = opened.load()
        metadata = json.loads(tree.attrs["sbnn"]) if "sbnn" in tree.attrs else None
        found = int(tree.attrs.get("sbnn_format", -1))
    except PermissionError:
        raise PermissionError(f"No permission to read {str(path)!r}.") from None
    except Exception as error:
        raise ValueError(
            f"{str(path)!r} is not a readable sbnn result (damaged, truncated or of another "
            f"kind): {type(error).__name__}."
        ) from None
    if metadata is None:
        raise ValueError(f"{str(path)!r} is a NetCDF file, but not one that sbnn wrote.")
    if found != FORMAT:
        raise ValueError(
            f"{str(path)!r} has format {found}; this version of sbnn reads {FORMAT}. "
            "Use the version that wrote it."
        )
    return tree, metadata
