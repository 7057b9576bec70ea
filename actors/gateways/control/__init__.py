"""The control socket: HTTP on a unix socket in the state directory.

    with ControlServer(operator, Path("state")):
        ...  # curl --unix-socket state/control.sock http://rekindle/api/v1/workers

The file modes (directory 0700, socket 0600) and the peer's uid decide who may connect: the
supervisor's own user, and root. `api.routes` holds the closed list of routes.
"""

from .control_server import ControlServer
from .socket_file import SOCKET_NAME

__all__ = ["SOCKET_NAME", "ControlServer"]
