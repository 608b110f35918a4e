"""Files are written atomically, and nothing is left behind."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sbnn._core.files import atomic, temporaries
from sbnn._core.files.atomic import (
    OutputExistsError,
    whole_file,
    whole_folder,
    write_bytes,
    write_text,
)
from sbnn._core.files.temporaries import UNFINISHED


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, SystemExit])
def test_interrupted_write_keeps_the_old_file_and_leaves_nothing_else(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("before")

    def stopped():
        with whole_file(path) as temporary:
            temporary.write_text("half")
            assert temporary.parent == tmp_path
            assert temporary.name.endswith(UNFINISHED)
            raise error

    with pytest.raises(error):
        stopped()
    assert os.listdir(tmp_path) == ["a.txt"]
    assert path.read_text() == "before"


def test_write_to_an_invalid_name_leaves_nothing_behind(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match=r"a"):
        write_text(tmp_path / "a", "text")
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o077, 0o600)])
def test_new_files_and_folders_follow_the_umask(tmp_path, umask, mask, expected):
    umask(mask)
    write_text(tmp_path / "a", "text")
    assert mode(tmp_path / "a") == expected
    with whole_folder(tmp_path / "b") as temporary:
        (temporary / "c").write_text("")
    assert mode(tmp_path / "b") == 0o777 & ~mask


def test_replaced_file_keeps_its_permissions(tmp_path, umask):
    path = tmp_path / "a"
    write_text(path, "old")
    path.chmod(0o640)
    write_text(path, "new")
    assert path.read_text() == "new"
    assert mode(path) == 0o640


@pytest.mark.parametrize("target", ["a", "missing"])
def test_link_is_replaced_and_its_target_is_not_touched(tmp_path, target):
    path, link = tmp_path / "a", tmp_path / "link"
    write_text(path, "old")
    link.symlink_to(target)
    write_text(link, "new")
    assert not link.is_symlink()
    assert link.read_text() == "new"
    assert path.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["a", "link"]


def test_error_names_the_requested_file(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write_text(tmp_path / "nowhere" / "a.txt", "text")
    assert caught.value.filename == str(tmp_path / "nowhere" / "a.txt")


def test_long_names_and_line_endings_are_kept(tmp_path):
    path = tmp_path / ("é" * 125 + ".txt")
    write_text(path, "a\r\nb\n")
    assert path.read_bytes() == b"a\r\nb\n"


# Nothing that exists is replaced unasked.


@pytest.fixture(params=["renameat2", "portable"])
def system(request, monkeypatch):
    """Systems with and without atomic no-replace renames."""
    if request.param == "portable":
        monkeypatch.setattr(atomic, "_renameat2", lambda: None)
    elif atomic._renameat2() is None:
        pytest.skip("the system has no renameat2")


@pytest.mark.parametrize("folder", [False, True])
def test_rename_to_an_existing_name_fails_and_changes_nothing(tmp_path, system, folder):
    source, target, free = tmp_path / "source", tmp_path / "target", tmp_path / "free"
    if folder:
        source.mkdir()
        (source / "inside").touch()
    else:
        source.write_text("new")
    target.write_text("old")
    with pytest.raises(FileExistsError):
        atomic.rename_new(source, target)
    assert target.read_text() == "old"
    atomic.rename_new(source, free)
    assert sorted(os.listdir(tmp_path)) == ["free", "target"]


def test_file_that_appears_during_the_work_is_not_replaced(tmp_path, system):
    path = tmp_path / "a.csv"

    def work():
        with whole_file(path, replace=False) as temporary:
            temporary.write_text("ours")
            path.write_text("theirs")

    with pytest.raises(OutputExistsError, match=r"is not replaced; the finished result is in") as e:
        work()
    assert e.value.kept == tmp_path / "a-2.csv"
    assert path.read_text() == "theirs"
    assert e.value.kept.read_text() == "ours"
    assert sorted(os.listdir(tmp_path)) == ["a-2.csv", "a.csv"]


@pytest.mark.parametrize("replaceable", [(), ("known",)])
def test_folder_that_appears_during_the_work_is_not_replaced(tmp_path, system, replaceable):
    out = tmp_path / "out"
    (tmp_path / "out-2").mkdir()

    def work():
        with whole_folder(out, replaceable) as temporary:
            (temporary / "ours").touch()
            out.mkdir()
            (out / "theirs").touch()
            (out / "known").touch()

    with pytest.raises(OutputExistsError, match="out exists and is not") as caught:
        work()
    assert caught.value.kept == tmp_path / "out-3"
    assert sorted(os.listdir(out)) == ["known", "theirs"]
    assert os.listdir(tmp_path / "out-3") == ["ours"]
    assert sorted(os.listdir(tmp_path)) == ["out", "out-2", "out-3"]


@pytest.mark.parametrize("before", [[], ["known"]])
def test_folder_with_replaceable_files_only_is_replaced(tmp_path, system, before):
    out = tmp_path / "out"
    out.mkdir()
    for name in before:
        (out / name).touch()
    with whole_folder(out, ["known"]) as temporary:
        (temporary / "new").touch()
    assert os.listdir(out) == ["new"]
    assert os.listdir(tmp_path) == ["out"]


def test_folder_with_the_name_of_a_replaceable_file_is_kept(tmp_path, system):
    out = tmp_path / "out"
    (out / "known").mkdir(parents=True)
    (out / "known" / "theirs").touch()
    with pytest.raises(OutputExistsError), whole_folder(out, ["known"]):
        pass
    assert (out / "known" / "theirs").exists()


def test_file_in_place_of_a_parent_folder_is_named(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(NotADirectoryError, match=r"a'$"), whole_folder(tmp_path / "a" / "out"):
        pass


def test_link_to_a_folder_is_not_replaced(tmp_path, system):
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")
    with pytest.raises(OutputExistsError), whole_folder(tmp_path / "out"):
        pass
    assert (tmp_path / "out").is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["out", "out-2", "real"]


def test_simultaneous_writers_of_one_folder_all_keep_their_result(tmp_path, system):
    texts = [f"result {k}" for k in range(8)]
    barrier = threading.Barrier(len(texts))

    def write(text: str) -> Path:
        try:
            with whole_folder(tmp_path / "out") as temporary:
                (temporary / "text").write_text(text)
                barrier.wait(60)
        except OutputExistsError as error:
            return error.kept
        return tmp_path / "out"

    with ThreadPoolExecutor(len(texts)) as pool:
        kept = list(pool.map(write, texts))
    assert sorted(path.name for path in kept) == ["out", *(f"out-{k}" for k in range(2, 9))]
    assert [(path / "text").read_text() for path in kept] == texts
    assert len(os.listdir(tmp_path)) == len(texts)


# Left-overs and messages.

KILLED = """
import os, signal, sys
from pathlib import Path
from sbnn._core.files.atomic import whole_file, whole_folder
with whole_folder(Path(sys.argv[1]) / "out") as a, whole_file(Path(sys.argv[1]) / "file") as b:
    (a / "half").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_leftovers_of_killed_processes_are_removed_and_those_in_use_are_kept(tmp_path):
    subprocess.run([sys.executable, "-c", KILLED, tmp_path])
    foreign = f".out.0badcafe-{'0' * 16}{UNFINISHED}"  # of another machine
    (tmp_path / foreign).touch()
    assert len(os.listdir(tmp_path)) == 3
    with whole_folder(tmp_path / "other") as ours:
        assert sorted(os.listdir(tmp_path)) == sorted([foreign, ours.name])
        write_text(tmp_path / "file", "text")
        assert ours.is_dir()
    assert sorted(os.listdir(tmp_path)) == [foreign, "file", "other"]


def test_without_locks_nothing_is_removed(tmp_path, monkeypatch):
    subprocess.run([sys.executable, "-c", KILLED, tmp_path])
    monkeypatch.setattr(temporaries, "fcntl", None)
    write_text(tmp_path / "a", "text")
    assert len(os.listdir(tmp_path)) == 3


def test_full_disk_error_names_the_file(tmp_path, monkeypatch):
    def full(*rest):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*a.csv'"):
        write_bytes(tmp_path / "a.csv", b"text")
    named = pytest.raises(OSError, match=r"No space left on device: '.*/out/b.csv'")
    with named, whole_folder(tmp_path / "out") as folder:
        write_bytes(folder / "b.csv", b"text")
    assert os.listdir(tmp_path) == []
