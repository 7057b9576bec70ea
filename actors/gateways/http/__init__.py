"""HTTP on TCP: the routes of the control socket for browsers and scripts, and the dashboard.

    with HttpServer(operator, Path("state"), HttpSettings()) as server:
        print(server.link(Role.VIEWER))  # http://127.0.0.1:8377/#token=…

`auth_app` decides who may send requests: by a token, one to read and one to send commands, and by
the `Host` and the origin of the request. `static/` holds the dashboard.
"""

from ..settings.http_settings import Address, HttpSettings
from .http_server import HttpServer
from .login_sessions import ClientRole
from .tokens import TOKEN_FILES

__all__ = ["TOKEN_FILES", "Address", "ClientRole", "HttpServer", "HttpSettings"]
