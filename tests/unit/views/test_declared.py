"""What a worker runs, as views and bug reports show it."""

from __future__ import annotations

import json
from typing import Any

from rekindle.actors import WorkerSpec, command
from rekindle.actors.spec.policies.alive_policy import AlivePolicy
from rekindle.actors.spec.probe import HttpProbe
from rekindle.actors.views.bug_report import declared


def test_a_worker_with_a_probe_is_shown_with_its_settings_and_without_the_secrets_of_its_headers() -> None:
    """The whole answer failed: the headers of a probe are a read-only mapping, which cannot be copied."""
    probe = HttpProbe(url="http://127.0.0.1:8080/health", headers={"Authorization": "Bearer hunter22hunter"})
    spec = WorkerSpec("worker:web:0", command("serve"), alive=AlivePolicy(http=probe))
    shown: Any = declared(spec)
    assert shown["alive"]["http"]["url"] == "http://127.0.0.1:8080/health"
    assert "hunter22" not in json.dumps(shown)
    assert shown["restart"]["on_exhausted"] == "mark_failed"
