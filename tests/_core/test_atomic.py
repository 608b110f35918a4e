"""Files are written atomically, and nothing is left behind."""

from __future__ import annotations

import os
import stat

import pytest

from sbnn._core.atomic import UNFINISHED, whole_file, whole_folder, write_text


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


def test_replaced_file_keeps_its_permissions_and_links(tmp_path, umask):
    path, link = tmp_path / "a", tmp_path / "link"
    write_text(path, "old")
    path.chmod(0o640)
    link.symlink_to("a")
    write_text(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert mode(path) == 0o640


def test_error_names_the_requested_file(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write_text(tmp_path / "nowhere" / "a.txt", "text")
    assert caught.value.filename == str(tmp_path / "nowhere" / "a.txt")


def test_long_names_and_line_endings_are_kept(tmp_path):
    path = tmp_path / ("é" * 125 + ".txt")
    write_text(path, "a\r\nb\n")
    assert path.read_bytes() == b"a\r\nb\n"
