"""NetCDF files of saved objects: written atomically with a checksum, which reading checks."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sbnn._core.files.atomic import write_bytes
from sbnn._core.files.digests import DamagedError, is_sealed, sealed, unsealed

if TYPE_CHECKING:
    import xarray as xr

FORMAT = 4  # since 4, files end with a checksum
_OTHER_FORMAT = (
    f"has format {{}}; this version of sbnn reads {FORMAT}. Use the version that wrote it."
)


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
    if (path.exists() or path.is_symlink()) and not overwrite:
        raise FileExistsError(
            f"{str(path)!r} exists; use another name, save with overwrite=True, or delete it."
        )
    # Written to memory first: the checksum follows the content, and a full disk is Python's error,
    # not one of the HDF5 library.
    with _without_cluster():
        content = bytes(tree.to_netcdf(engine="h5netcdf"))
    write_bytes(path, sealed(content), replace=overwrite)


def _without_cluster() -> contextlib.AbstractContextManager[Any]:
    """Let xarray write in this process; with a Dask client it would ask the cluster for a lock."""
    dask = sys.modules.get("dask")
    # A function: by the name "synchronous", Dask warns that a client is active.
    return contextlib.nullcontext() if dask is None else dask.config.set(scheduler=dask.get)


def read_tree(path: Path) -> tuple[xr.DataTree, dict[str, Any]]:
    """The tree and the metadata in a file that `write_tree` wrote; raises for any other file."""
    import xarray as xr

    if not path.exists():
        raise FileNotFoundError(f"No file {str(path)!r}.")
    if path.is_dir():
        inside = sorted(p.name for p in path.glob("*.nc"))
        hint = f"give {str(path / inside[0])!r}" if inside else "give a file that `save` wrote"
        raise IsADirectoryError(f"{str(path)!r} is a folder; {hint}.")
    content = _checked_content(path)
    try:
        with xr.open_datatree(io.BytesIO(content), engine="h5netcdf") as opened:
            tree = opened.load()
        metadata = json.loads(tree.attrs["sbnn"]) if "sbnn" in tree.attrs else None
        found = int(tree.attrs.get("sbnn_format", -1))
    except Exception as error:
        raise ValueError(
            f"{str(path)!r} is not a readable sbnn result: {type(error).__name__}."
        ) from None
    if metadata is None:
        raise ValueError(f"{str(path)!r} is a NetCDF file, but not one that sbnn wrote.")
    if found != FORMAT:
        raise ValueError(f"{str(path)!r} {_OTHER_FORMAT.format(found)}")
    return tree, metadata


def _checked_content(path: Path) -> bytes:
    """The content of a file without its checksum; nothing is parsed that does not match it."""
    try:
        data = path.read_bytes()
    except PermissionError:
        raise PermissionError(f"No permission to read {str(path)!r}.") from None
    try:
        return unsealed(data)
    except DamagedError as error:
        why = f"is damaged: {error}." if is_sealed(data) else _without_checksum(data)
    raise ValueError(f"{str(path)!r} {why}")


def _without_checksum(data: bytes) -> str:
    """What is wrong with a file that does not end with a checksum."""
    import h5py

    try:
        with h5py.File(io.BytesIO(data), "r") as file:
            found = int(np.ravel(file.attrs.get("sbnn_format", 0))[0])
    except Exception:
        return "is not a readable sbnn result (damaged, truncated or of another kind)."
    if found == 0:
        return "is a NetCDF file, but not one that sbnn wrote."
    if found < FORMAT:
        return _OTHER_FORMAT.format(found)
    return "was changed by another program: its checksum is missing. Use the original file."
