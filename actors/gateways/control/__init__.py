"""The control socket: HTTP on a unix socket in the state directory.

    with ControlServer(operator, Path("state")):
        ...  # curl --unix-socket state/control.sock http://rekindle/api/v1/workers

Who may connect is decided by the kernel (directory 0700, socket 0600) and by the peer's uid,
which must be ours or root's. `routes` holds the closed list of what can be asked.
"""

from .control_server import ControlServer
from .socket_file import SOCKET_NAME

__all__ = ["SOCKET_NAME", "ControlServer"]
