"""Which descriptor of those that systemd hands over is which socket."""

from __future__ import annotations

from rekindle.actors.processes.sockets.inherited_sockets import match


def test_a_descriptor_with_the_name_of_a_socket_is_that_socket() -> None:
    assert match(["web", "admin"], ["admin", "web"]) == {"admin": 3, "web": 4}


def test_descriptors_without_a_known_name_are_the_sockets_in_order() -> None:
    assert match(["web", "admin"], ["unknown", "app.socket"]) == {"web": 3, "admin": 4}
    assert match(["web", "admin", "api"], ["x", "admin"]) == {"web": 3, "admin": 4}


def test_of_two_descriptors_with_one_name_the_first_is_the_socket() -> None:
    assert match(["web"], ["web", "web"]) == {"web": 3}
