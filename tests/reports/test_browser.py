"""The tests' browser: found, installed if possible, and never the cause of a failure."""

import os
import subprocess

import browser
import pytest


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine without a browser; commands are recorded and passed to `act`."""
    commands = []

    def note(command, **options):
        commands.append(command)
        return machine.act(command)

    class machine:
        ran = commands
        tools = {}  # noqa: RUF012
        act = staticmethod(lambda command: subprocess.CompletedProcess(command, 1, "", ""))

    monkeypatch.delenv("SBNN_CHROMIUM", raising=False)
    monkeypatch.setattr(browser.shutil, "which", lambda name: machine.tools.get(name))
    monkeypatch.setattr(browser.subprocess, "run", note)
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)
    browser._starts.cache_clear()
    yield machine
    browser._starts.cache_clear()


def test_root_installs_by_the_package_manager(bare, capsys):
    bare.tools["apt-get"] = "/usr/bin/apt-get"

    def act(command):
        if "install" in command:
            bare.tools["chromium"] = "/usr/bin/chromium"
        return subprocess.CompletedProcess(command, 0, "Chromium 100", "")

    bare.act = act
    assert browser.install() == "tests of pages use /usr/bin/chromium"
    assert ["update" in c or "install" in c for c in bare.ran] == [True, True, False]
    assert "installing Chromium" in capsys.readouterr().out


def test_failed_installation_is_reported_without_an_error(bare, monkeypatch):
    assert "will be skipped. Install it" in browser.install()  # no package manager
    bare.tools["apt-get"] = "/usr/bin/apt-get"
    assert "could not be installed" in browser.install()  # fails, as without a network
    bare.ran.clear()
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    assert "will be skipped. Install it" in browser.install()
    assert bare.ran == []  # only root may install
    with pytest.raises(pytest.skip.Exception, match="apt install chromium"):
        browser.require()


def test_placeholder_that_does_not_start_is_not_a_browser(bare):
    bare.tools["chromium"] = "/usr/bin/chromium"
    assert browser.find() is None


def test_browser_can_be_named_or_declined(bare, monkeypatch):
    bare.act = lambda command: subprocess.CompletedProcess(command, 0, "Google Chrome 100", "")
    monkeypatch.setenv("SBNN_CHROMIUM", "/opt/chrome")
    assert browser.find() == "/opt/chrome"
    monkeypatch.setenv("SBNN_CHROMIUM", "none")
    bare.tools["chromium"] = "/usr/bin/chromium"
    assert browser.find() is None
    assert "names no browser" in browser.install()
