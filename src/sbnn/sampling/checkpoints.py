"""Checkpoints: the state of a long computation in a folder, each part written atomically."""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sbnn._core.files.atomic import whole_file
from sbnn._core.files.digests import file_digest
from sbnn._core.files.temporaries import UNFINISHED
from sbnn.sampling.storage import Companion, Saved

try:
    import fcntl
except ImportError:  # not available on Windows, where nothing stops a second process
    fcntl = None  # type: ignore[assignment]

FORMAT = 2
_MAGIC = b"sbnn checkpoint"
_SUFFIX = ".sbnn"
_CALL, _RESULT = "call", "result.nc"
_START_OVER = "Give another directory, or delete this one to start over."


class CheckpointError(ValueError):
    """A checkpoint that cannot be used: it belongs to another call, is damaged, or is in use."""


@dataclass(frozen=True)
class FolderCheckpoint:
    """A checkpoint in a folder: the state of a computation, or of the part called `name`."""

    folder: Folder
    name: str = ""

    def part(self, name: str) -> FolderCheckpoint:
        """The checkpoint of a part of the computation."""
        return FolderCheckpoint(self.folder, f"{self.name}.{name}" if self.name else name)

    def read(self) -> Saved | None:
        """Arrays and values as last written, or None."""
        return self.folder.read(self.name)

    def write(self, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any]) -> None:
        """Replace the stored state in one step."""
        self.folder.write(self.name, arrays, values)

    def accompany(self, companion: Companion) -> None:
        """Store the companion's state with every part, and restore it when a part is read."""
        self.folder.companion = companion


class Folder:
    """The files of one call: `call.sbnn`, which describes the call and lists its parts, one file
    per part, and at the end only the result.

    A file is a line with the format and the SHA-256 of the rest, a line of JSON, and the
    arrays as .npz without pickle. It is written under a temporary name, synchronised to disk and
    renamed. A part's name enters `call.sbnn` after its file is there, so a name without a file
    means that the file was lost.
    """

    def __init__(self, path: str | os.PathLike, call: Mapping[str, Any]):
        self.path = Path(path)
        self.call = json.loads(json.dumps(call))
        self.identity = hashlib.sha256(_json(self.call)).hexdigest()
        self.parts: list[str] = []
        self.result: str | None = None  # SHA-256 of the finished result
        self.companion: Companion | None = None
        self.earlier, self.started = 0.0, time.perf_counter()
        if self.path.exists() and not self.path.is_dir():
            raise NotADirectoryError(
                f"`checkpoint` must be a directory; {str(self.path)!r} is a file; give another."
            )
        self.path.mkdir(parents=True, exist_ok=True)
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise PermissionError(
                f"`checkpoint` directory {str(self.path)!r} cannot be written to."
            )
        self._lock = _lock(self.path)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        # Our temporary files are left over from interrupted writes; they hold nothing of value.
        names = sorted(p.name for p in self.path.iterdir() if not p.name.endswith(UNFINISHED))
        if not names:
            return
        if _CALL + _SUFFIX not in names:
            if any(n.endswith(_SUFFIX) for n in names):
                raise self._damaged(f"{_CALL}{_SUFFIX} is missing")
            raise CheckpointError(
                f"The directory {str(self.path)!r} holds other files ({', '.join(names[:3])}"
                f"{', …' if len(names) > 3 else ''}) and no checkpoint. Use a new or empty one."
            )
        content = self._load(_CALL)[1]
        different = _differences(content["call"], self.call)
        if different:
            raise CheckpointError(
                f"The checkpoint in {str(self.path)!r} belongs to another call:\n  "
                + "\n  ".join(different)
                + f"\nRepeat that call to continue it. {_START_OVER}"
            )
        self.parts, self.result = content["parts"], content["result"]
        self.earlier = content["seconds"]
        listed = [part + _SUFFIX for part in self.parts] + ([_RESULT] if self.result else [])
        missing = [name for name in listed if name not in names]
        if missing:
            raise self._damaged(f"{', '.join(missing)} is missing")
        self._tidy()

    def _tidy(self) -> None:
        """Remove leftovers of interrupted writes and, once there is a result, its parts."""
        for path in self.path.glob(f"*{UNFINISHED}"):
            path.unlink()
        for path in self.path.glob(f"*{_SUFFIX}") if self.result else ():
            if path.stem != _CALL:
                path.unlink()

    def _damaged(self, what: str) -> CheckpointError:
        return CheckpointError(
            f"The checkpoint in {str(self.path)!r} is damaged: {what}. {_START_OVER}"
        )

    @property
    def seconds(self) -> float:
        """Time spent on the call, earlier runs included up to their last finished part."""
        return self.earlier + time.perf_counter() - self.started

    def read(self, part: str) -> Saved | None:
        if not (self.path / (part + _SUFFIX)).exists():
            return None
        arrays, content = self._load(part)
        if content["identity"] != self.identity:
            raise self._damaged(f"{part}{_SUFFIX} is from another checkpoint")
        self.earlier = max(self.earlier, content["seconds"])
        if self.companion is not None:
            self.companion.restore(content["companion"])
        return arrays, content["values"]

    def write(self, part: str, arrays: Mapping[str, np.ndarray], values: Mapping[str, Any]) -> None:
        if not (self.path / (_CALL + _SUFFIX)).exists():
            self._write_call()
        content = {
            "identity": self.identity,
            "seconds": self.seconds,
            "values": dict(values),
            "companion": None if self.companion is None else self.companion.state(),
        }
        self._write(part, content, arrays)
        if part not in self.parts:
            self.parts.append(part)
            self._write_call()

    def finish(self, save: Callable[[Path], None]) -> None:
        """Keep the result, written by `save(path)`, and remove the parts that led to it."""
        path = self.path / _RESULT
        save(path)
        with path.open("rb+") as file:
            os.fsync(file.fileno())
        self.result, self.parts = file_digest(path), []
        self._write_call()
        self._tidy()

    def finished(self) -> Path | None:
        """The finished result's file, or None."""
        path = self.path / _RESULT
        if self.result is None:
            return None
        if file_digest(path) != self.result:
            raise self._damaged(f"{_RESULT} does not match its checksum")
        return path

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _write_call(self) -> None:
        content = {
            "call": self.call,
            "parts": self.parts,
            "result": self.result,
            "seconds": self.seconds,
        }
        self._write(_CALL, content, {})

    def _write(self, part: str, content: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        packed = io.BytesIO()
        if arrays:
            np.savez(packed, **arrays)  # `allow_pickle` would be an array in older versions
        body = _json(content) + b"\n" + packed.getvalue()
        head = b"%s %d %s\n" % (_MAGIC, FORMAT, hashlib.sha256(body).hexdigest().encode())
        with whole_file(self.path / (part + _SUFFIX)) as temporary, temporary.open("wb") as file:
            file.write(head + body)
            file.flush()
            os.fsync(file.fileno())
        _sync_directory(self.path)

    def _load(self, part: str) -> Saved:
        name = part + _SUFFIX
        head, _, body = (self.path / name).read_bytes().partition(b"\n")
        words = head.split(b" ")
        if b" ".join(words[:2]) != _MAGIC or len(words) != 4:
            raise self._damaged(f"{name} is not a checkpoint file")
        if words[3].decode("ascii", "replace") != hashlib.sha256(body).hexdigest():
            raise self._damaged(f"{name} does not match its checksum")
        if words[2] != b"%d" % FORMAT:
            found = words[2].decode("ascii", "replace")
            raise CheckpointError(
                f"The checkpoint in {str(self.path)!r} has format {found}; this "
                f"version of sbnn reads {FORMAT}. Continue with the version that wrote it. "
                f"{_START_OVER}"
            )
        line, _, packed = body.partition(b"\n")
        arrays: dict[str, np.ndarray] = {}
        if packed:
            with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
                arrays = dict(archive)
        return arrays, json.loads(line)


def _json(content: Any) -> bytes:
    # JSON keeps a float64 exactly: Python writes the shortest decimal that reads back the same.
    return json.dumps(content, sort_keys=True).encode()


def _sync_directory(path: Path) -> None:
    """Make a rename survive a power failure (a directory cannot be opened on Windows)."""
    if os.name == "posix":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _lock(path: Path) -> int | None:
    """Lock the directory for this process; the lock ends with the process, even if it is killed."""
    if fcntl is None:
        return None
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise CheckpointError(
            f"The checkpoint in {str(path)!r} is in use by another run. Wait for it, or give "
            "another directory."
        ) from None
    except OSError:  # a file system without locks
        os.close(descriptor)
        return None
    return descriptor


def _differences(there: Any, here: Any, name: str = "") -> list[str]:
    """The differences between two descriptions, one line each."""
    if isinstance(there, dict) and isinstance(here, dict):
        keys = sorted(there.keys() | here.keys())
        return [
            line
            for key in keys
            for line in _differences(there.get(key), here.get(key), f"{name}.{key}".lstrip("."))
        ]
    if there == here:
        return []
    return [f"{name}: {_short(there)} there, {_short(here)} here"]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"
