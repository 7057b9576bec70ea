"""`rekindle service`: the unit that it writes, and what it tells systemd.

The orders go to a program named `systemctl` that notes them; tests/running/service boots a real systemd.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rekindle.cli.commands.setup import service as service_module
from rekindle.cli.main import main

FILE = '[worker.web]\ncommand = ["sleep", "1000"]\n'

Service = Callable[..., Result]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "workers.toml"
    path.write_text(FILE)
    return path


@pytest.fixture
def units(tmp_path: Path) -> Path:
    return tmp_path / "config" / "systemd" / "user"


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """What `systemctl` was asked, line by line; it fails for a unit whose name is `broken`."""
    return tmp_path / "orders"


@pytest.fixture
def service(tmp_path: Path, orders: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """`rekindle service` on a machine whose systemd is a program that notes what it is asked."""
    programs = tmp_path / "bin"
    programs.mkdir()
    systemctl = programs / "systemctl"
    systemctl.write_text(
        f'#!/bin/sh\necho "$@" >> {orders}\ncase "$*" in *broken*) echo "no such unit" >&2; exit 5;; esac\n'
    )
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(service_module, "BOOTED", tmp_path)
    monkeypatch.setattr(service_module, "SYSTEM_UNITS", tmp_path / "system")
    return lambda *arguments: CliRunner().invoke(main, ["service", *map(str, arguments)])


def test_a_user_service_is_written_enabled_and_started(
    service: Service, file: Path, units: Path, orders: Path
) -> None:
    done = service("install", file, "--user", "--name", "app")
    assert done.exit_code == 0, done.output
    text = (units / "app.service").read_text()
    assert f"run {file} --log-json\n" in text
    assert "WantedBy=default.target\n" in text
    assert orders.read_text().splitlines() == [
        "--user daemon-reload",
        "--user enable app.service",
        "--user restart app.service",
    ]


def test_the_system_service_is_protected_and_has_a_watchdog(
    service: Service, file: Path, tmp_path: Path
) -> None:
    assert service("install", file, "--run-as", "root").exit_code == 0
    text = (tmp_path / "system" / "rekindle.service").read_text()
    for line in ("NoNewPrivileges=yes", "ProtectSystem=full", "Delegate=yes", "WatchdogSec=30", "User=root"):
        assert f"{line}\n" in text


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("scope", [(), ("--user",)], ids=["system", "user"])
def test_systemd_accepts_the_unit(
    service: Service, file: Path, tmp_path: Path, scope: tuple[str, ...]
) -> None:
    assert service("install", file, *scope, "--no-start").exit_code == 0
    (unit,) = tmp_path.rglob("rekindle.service")
    checked = subprocess.run(
        ["systemd-analyze", "verify", *scope, str(unit)], capture_output=True, text=True, check=False
    )
    about_it = [line for line in checked.stderr.splitlines() if "rekindle.service" in line]
    assert about_it == []


def test_a_second_install_replaces_the_first_and_remove_ends_it(
    service: Service, file: Path, units: Path, orders: Path
) -> None:
    assert service("install", file, "--user").exit_code == 0
    assert service("install", file, "--user").exit_code == 0
    orders.unlink()
    assert service("remove", "--user").exit_code == 0
    assert not (units / "rekindle.service").exists()
    assert orders.read_text().splitlines() == [
        "--user disable --now rekindle.service",
        "--user daemon-reload",
    ]


def test_a_unit_of_another_program_is_neither_replaced_nor_removed(
    service: Service, file: Path, units: Path
) -> None:
    units.mkdir(parents=True)
    (units / "nginx.service").write_text("[Unit]\n")
    for arguments in (("install", file, "--name", "nginx"), ("remove", "nginx")):
        refused = service(*arguments, "--user")
        assert refused.exit_code == 1
        assert "is not of `rekindle service install`" in refused.output
    assert (units / "nginx.service").read_text() == "[Unit]\n"


def test_an_order_that_systemd_refuses_is_told_with_its_words(service: Service, file: Path) -> None:
    failed = service("install", file, "--user", "--name", "broken")
    assert failed.exit_code == 1
    assert (
        "`systemctl --user enable broken.service` failed: no such unit; the unit stays in " in failed.output
    )


def test_without_systemd_nothing_is_written(
    service: Service, file: Path, units: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "BOOTED", tmp_path / "absent")
    refused = service("install", file, "--user")
    assert refused.exit_code == 1
    assert "systemd does not run on this machine" in refused.output
    assert not units.exists()


def test_a_dry_run_prints_the_unit_and_changes_nothing(
    service: Service, file: Path, units: Path, orders: Path
) -> None:
    shown = service("install", file, "--user", "--dry-run")
    assert "ExecStart=" in shown.output
    assert "# systemctl --user restart rekindle.service" in shown.output
    assert not units.exists()
    assert not orders.exists()


@pytest.mark.parametrize("name", ["../up", "a b", "", "-x"])
def test_a_name_that_is_not_a_unit_is_refused(service: Service, file: Path, name: str) -> None:
    assert service("install", file, "--name", name, "--user").exit_code == 2


def test_a_file_with_problems_is_not_installed(service: Service, file: Path, units: Path) -> None:
    file.write_text("[worker.web]\ncomand = 5\n")
    assert service("install", file, "--user").exit_code == 2
    assert not units.exists()
