"""Whether this machine may join its Ray, before anything starts: told in a sentence, within seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec
from loguru import logger

from rekindle.actors.gateways.gateway_errors import GatewayError, MissingExtraError
from rekindle.actors.gateways.ray.attached_machines import Attached
from rekindle.actors.gateways.ray.head_check import is_reached, mismatch
from rekindle.actors.gateways.ray.ray_node import TOKEN_NAME, token, token_environment, write_private
from rekindle.actors.gateways.secret_file import read_secret
from rekindle.actors.gateways.settings.ray_attachment import Attachment

from ...config.file_tables import ClusterSettings


def check_ray(settings: ClusterSettings, state_dir: Path) -> None:
    """Ask the head, if this machine has not got it, whether it takes us. A head that is away may come back.

    Raises:
        MissingExtraError: Ray is not installed.
        GatewayError: the head refuses our token, or runs other versions.
    """
    if settings.engine != "ray":
        return
    if find_spec("ray") is None:
        raise MissingExtraError('engine = "ray"', "cluster")
    environment = dict(os.environ)
    if settings.attached is None:
        assert settings.secret_file is not None
        file = state_dir / TOKEN_NAME
        write_private(file, token(read_secret(Path(settings.secret_file)), settings.name))
        environment |= token_environment(file)
    addresses = settings.join if settings.attached is None else (settings.attached.ray,)
    for address in addresses:
        if is_reached(address):
            if (why := mismatch(address, environment)) is not None:
                raise GatewayError(why)
            return
    if addresses:
        logger.warning("cluster: the head of Ray at {} does not answer yet", ", ".join(addresses))


def attach_all(attachment: Attachment) -> tuple[Attached, ...]:
    """Start an agent on each machine of a Ray; what came of each.

    Raises:
        GatewayError: Ray cannot be joined.
    """
    found = subprocess.run(
        [
            sys.executable,
            "-m",
            "rekindle.actors.gateways.ray.agent_launch",
            msgspec.json.encode(attachment).decode(),
        ],
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        raise GatewayError((found.stderr.strip() or "Ray cannot be used").rpartition("\n")[2])
    lines = (line for line in found.stdout.splitlines() if line.startswith("{"))
    return tuple(msgspec.json.decode(line, type=Attached) for line in lines)
