"""`env_file`: what workers get, and what is refused before anything starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rekindle.actors import SpecError, read_env_file
from rekindle.cli.config import Config, ConfigError, load
from rekindle.cli.config.config_text import as_document, as_text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.env").write_text("A=1\nB=file\n")
    (tmp_path / "secret.env").write_text("DB_PASSWORD=hunter22\n")
    (tmp_path / "secret.env").chmod(0o600)
    return tmp_path


def loaded(folder: Path, worker: str, defaults: str = "") -> Config:
    file = folder / "workers.toml"
    file.write_text(f'{defaults}\n[worker.web]\ncommand = ["true"]\n{worker}\n')
    return load(file)


def refused(folder: Path, worker: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        loaded(folder, worker)
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]


def test_files_are_read_in_order_and_env_takes_precedence(folder: Path) -> None:
    (folder / "b.env").write_text("A=2\nC=${A}\n")
    config = loaded(folder, 'env_file = ["a.env", "b.env"]\nenv = { B = "own", D = "${C}" }')
    assert dict(config.specs()[0].env) == {"A": "2", "B": "own", "C": "2", "D": "2"}


def test_the_files_of_the_defaults_are_for_workers_without_their_own(folder: Path) -> None:
    defaults = '[defaults]\nenv_file = "a.env"\n'
    assert loaded(folder, "", defaults).specs()[0].env["A"] == "1"
    own = loaded(folder, 'env_file = "secret.env"', defaults)
    assert dict(own.specs()[0].env) == {"DB_PASSWORD": "hunter22"}


def test_every_worker_may_have_a_file_of_its_own(folder: Path) -> None:
    for number in (0, 1):
        (folder / f"web-{number}.env").write_text(f"N={number}\n")
    config = loaded(folder, 'env_file = "{name}-{n}.env"\ncount = 2')
    assert [spec.env["N"] for spec in config.specs()] == ["0", "1"]
    assert refused(folder, 'env_file = "{name}-{n}.env"\ncount = 3')[0].endswith("No such file or directory")


def test_all_problems_of_all_files_are_told_at_once(folder: Path) -> None:
    (folder / "bad.env").write_text("what\nA='\n")
    os.mkfifo(folder / "pipe")
    (folder / "latin").write_bytes(b"A=\xff\n")
    files = '["none.env", "bad.env", "pipe", "latin"]'
    told = refused(folder, f'env_file = {files}\nenv = {{ A = "${{B}}" }}\ncount = -1')
    here = "workers.toml:4: worker.web.env_file"
    assert told == [
        f"{here}: none.env: cannot be read: No such file or directory",
        f"{here}: bad.env: line 1: is not NAME=value",
        f"{here}: bad.env: line 2: the quotation mark of A is not closed",
        f"{here}: pipe: is not a file of at most 1048576 bytes",
        f"{here}: latin: is not UTF-8 text",
        "workers.toml:6: worker.web.count = -1: must be between 0 and 1000",
    ]


def test_a_file_with_secrets_that_every_user_can_read_is_refused(folder: Path) -> None:
    (folder / "secret.env").chmod(0o644)
    (told,) = refused(folder, 'env_file = "secret.env"')
    assert told.endswith("every user can read it, and it holds DB_PASSWORD: chmod o-r secret.env")


def test_a_file_that_every_user_can_change_is_refused(folder: Path) -> None:
    (folder / "a.env").chmod(0o646)
    assert "every user can change it" in refused(folder, 'env_file = "a.env"')[0]


def test_what_a_file_holds_is_not_shown(folder: Path) -> None:
    config = loaded(folder, 'env_file = ["a.env", "secret.env"]\nenv = { OWN = "x" }')
    shown = as_document(config)["workers"][0]["env"]
    assert shown == {"A": "***", "B": "***", "DB_PASSWORD": "***", "OWN": "x"}
    (folder / "shown.toml").write_text(as_text(config))
    assert "hunter22" not in (folder / "shown.toml").read_text()
    assert load(folder / "shown.toml").specs() == config.specs()


def test_a_host_reads_a_file_by_itself(folder: Path) -> None:
    assert read_env_file(folder / "a.env") == {"A": "1", "B": "file"}
    with pytest.raises(SpecError, match="No such file"):
        read_env_file(folder / "none.env")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a link of another user")
def test_a_link_of_another_user_does_not_lead_to_the_secrets_of_root(folder: Path) -> None:
    """The owner of the folder of a file would get the variables of any file of root."""
    link = folder / "app.env"
    link.symlink_to(folder / "secret.env")
    os.lchown(link, 65534, 65534)
    (spec,) = loaded(folder, 'env_file = "app.env"').specs()
    assert "a symbolic link of another user (uid 65534) is on its path" in spec.obstacle
    assert not spec.env
    os.chown(folder / "secret.env", 65534, 65534)
    (spec,) = loaded(folder, 'env_file = "app.env"').specs()
    assert (dict(spec.env), spec.obstacle) == ({"DB_PASSWORD": "hunter22"}, "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("A", "is not NAME=value"),
        ("REKINDLE_FD=3", "REKINDLE_FD is reserved"),
        (None, "No such file or directory"),
    ],
)
def test_what_another_user_writes_into_a_file_hinders_only_the_workers_that_read_it(
    folder: Path, text: str | None, reason: str
) -> None:
    """Also if their other settings refer to its variables: without them they could not be understood."""
    theirs = folder / "theirs"
    theirs.mkdir()
    if text is not None:
        (theirs / "app.env").write_text(text)
    os.chown(theirs, 65534, 65534)
    config = loaded(
        folder,
        'env_file = "theirs/app.env"\ncwd = "${HERE}"\nalive = { tcp = "127.0.0.1:${PORT}" }\n'
        '[worker.other]\ncommand = ["true"]',
    )
    hindered, other = config.specs()
    assert reason in hindered.obstacle
    assert not other.obstacle
