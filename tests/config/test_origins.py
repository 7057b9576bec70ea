"""Where the value of each setting comes from."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from click.testing import CliRunner

from rekindle.actors.views.setting_origin import Origin, SettingOrigin
from rekindle.cli.config import parse
from rekindle.cli.config.config_text import as_text
from rekindle.cli.config.origins import origin_text, setting_origins
from rekindle.cli.main import main

FILE = """\
[defaults.restart]
max_in_window = 7

[defaults.log]
file = "none"

[worker.web]
command = ["serve", "--token=s3cr3t"]
preset = "service"
count = 2
env = { API_TOKEN = "s3cr3t", MODE = "prod" }
ready = { http = "http://127.0.0.1:8000/" }
restart = { max_delay_s = 9 }

[worker.job]
command = ["job"]
temporary = true
"""


def found(text: str = FILE, *scaled: str) -> dict[str, SettingOrigin]:
    """The settings by their whole names."""
    settings = setting_origins(parse(text, Path("/srv/workers.toml")), scaled)
    return {f"{each.table}.{each.key}".lstrip("."): each for each in settings}


def origin(key: str, *scaled: str) -> str:
    return origin_text(found(FILE, *scaled)[key])


def test_a_value_comes_from_the_workers_table_else_from_the_defaults_the_preset_or_the_program() -> None:
    assert origin("worker.web.restart.max_delay_s") == "line 13"
    assert origin("worker.web.restart.max_in_window") == "line 2, [defaults]"
    assert origin("worker.web.restart.window_s") == "preset service"
    assert origin("worker.job.restart.window_s") == "preset steady"
    assert origin("worker.web.stop.term_s") == "default"
    assert origin("database") == "default"


def test_a_probe_in_short_is_the_address_and_the_rest_of_it_are_defaults() -> None:
    assert origin("worker.web.ready.http.url") == "line 12"
    assert origin("worker.web.ready.http.codes") == "default"


def test_a_key_that_stands_for_another_one_is_its_origin() -> None:
    assert found()["worker.job.restart.restart_on"].value == '"never"'
    assert origin("worker.job.restart.restart_on") == "line 17"


def test_a_number_of_workers_that_an_operator_gave_comes_from_the_operator() -> None:
    assert origin("worker.web.count") == "line 10"
    assert found(FILE, "web")["worker.web.count"].origin is Origin.SCALE


def test_secrets_and_all_values_of_variables_are_masked() -> None:
    settings = found()
    assert "s3cr3t" not in repr(settings)
    assert settings["worker.web.env.MODE"].value == '"***"'
    assert origin("worker.web.env.MODE") == "line 11"


def test_config_show_prints_the_origins_as_comments_of_a_valid_file(tmp_path: Path) -> None:
    file = tmp_path / "workers.toml"
    file.write_text(FILE)
    shown = CliRunner().invoke(main, ["config", "show", str(file), "--origins"])
    assert shown.exit_code == 0, shown.output
    assert "worker.web.restart.window_s = 1800.0  # preset service\n" in shown.output
    assert tomllib.loads(shown.output)["worker"]["web"]["count"] == 2
    document = json.loads(
        CliRunner().invoke(main, ["config", "show", str(file), "--origins", "--json"]).output
    )
    assert {"table", "key", "value", "origin", "line", "preset"} == set(document["settings"][0])


def test_a_worker_without_a_log_file_is_shown_without_one() -> None:
    """It was shown as a file called "none" in the folder of the configuration."""
    assert found()["worker.web.log.file"].value == '"none"'
    config = parse(FILE, Path("/srv/workers.toml"))
    again = parse(as_text(config), Path("/srv/workers.toml"))
    assert {spec.log.file for spec in again.specs() if spec.log} <= {None, "none"}
