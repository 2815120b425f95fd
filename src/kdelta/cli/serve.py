# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta serve: the store as web pages, for this machine, or with a token for others."""

from __future__ import annotations

import errno
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from kdelta import distributions
from kdelta.cli import _stores
from kdelta.cli._say import say
from kdelta.errors import HostError, UserError

if TYPE_CHECKING:
    from types import FrameType

    from kdelta.serve.guard import Access
    from kdelta.store.store import Store

EPILOG = """\b
Examples:
  kdelta serve                              http://127.0.0.1:8642/ on this machine
  kdelta serve --port 0                     any free port; the address is printed
  kdelta serve --host 0.0.0.0               other machines too, with the printed token
  ssh -L 8642:127.0.0.1:8642 lab            a lab's pages, safely from elsewhere

Nothing can be changed through the pages. Ctrl-C stops the server. Away from this machine
the pages travel unencrypted: prefer ssh -L, or put a TLS proxy in front of them.
"""
_LONGEST_REQUEST = 1 << 18  # bytes of request line and headers: a case's name may have 10 KB
_ANYWHERE = frozenset({"0.0.0.0", "::"})


@click.command(epilog=EPILOG)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; a token is required unless it is loopback.",
)
@click.option(
    "--port", "-p", type=click.IntRange(0, 65535), default=8642, show_default=True, help="Port; 0 takes any free one."
)
@click.option(
    "--token", "ask_token", is_flag=True, help="Require a token on loopback too (other users of this machine)."
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="An additional host name to accept, as behind a proxy; repeatable.",
)
def command(host: str, port: int, ask_token: bool, allow_host: tuple[str, ...]) -> int:
    """Show the stored experiments as web pages."""

    with _stores.reading() as store, _listen(host, port) as listener:
        _serve(store, listener, host, ask_token, allow_host)
    if any(thread is not threading.current_thread() and not thread.daemon for thread in threading.enumerate()):
        sys.stdout.flush()
        os._exit(0)  # a page that nobody waits for any more is still worked out; nothing is written, so nothing is lost
    return 0


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        UserError: the port is taken or reserved, or the address is not of this machine.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=128)
    except socket.gaierror:
        raise UserError(f"--host {host!r} is not an address of this machine; try 127.0.0.1 or 0.0.0.0") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UserError(
                f"port {port} on {host} is in use: choose another with --port, 0 for any free one"
            ) from None
        if error.errno == errno.EACCES:
            raise UserError(f"port {port} is reserved for root: choose one from 1024 on with --port") from None
        raise UserError(f"cannot listen on {host}, port {port}: {error.strerror}; try --host 127.0.0.1") from None


def _serve(store: Store, listener: socket.socket, host: str, ask_token: bool, allowed: tuple[str, ...]) -> None:
    try:
        import uvicorn

        from kdelta.serve.app import create_app, load_ahead
    except ModuleNotFoundError as error:
        raise HostError(f"kdelta serve needs {error.name}: {distributions.extra('serve')}") from None

    port = listener.getsockname()[1]
    access = _access(listener, host, ask_token, allowed)
    app = create_app(store, access, lambda text: say(f"kdelta serve: {text}", err=True))
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="critical",  # the application reports its failures itself
            access_log=False,  # it would hold the token
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
            http="h11",
            h11_max_incomplete_event_size=_LONGEST_REQUEST,
            timeout_graceful_shutdown=2,
        )
    )
    shown = socket.gethostname() if host in _ANYWHERE else host
    shown = f"[{shown}]" if ":" in shown else shown
    query = f"?token={access.token}" if access.token else ""
    say(f"http://{shown}:{port}/{query}")
    say("Ctrl-C stops it.", err=True)
    load_ahead()
    with _until_stopped():
        server.run(sockets=[listener])


def _access(listener: socket.socket, host: str, ask_token: bool, allowed: tuple[str, ...]) -> Access:
    """Whom to answer at this address."""
    import ipaddress

    from kdelta.serve.guard import LOOPBACK_NAMES, Access

    address, port = listener.getsockname()[:2]
    local = ipaddress.ip_address(address).is_loopback
    names = {name.lower().strip("[]") for name in (*allowed, host, address)}
    if host in _ANYWHERE:
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    return Access(
        hosts=LOOPBACK_NAMES | names,
        any_address=host in _ANYWHERE,
        token="" if local and not ask_token else secrets.token_urlsafe(24),
        cookie=f"kdelta_token_{port}",  # browsers do not tell ports apart
    )


@contextmanager
def _until_stopped() -> Iterator[None]:
    """Ctrl-C and SIGTERM are the ordinary ends of a server; uvicorn raises them again when it has finished."""

    def stop(_number: int, _frame: FrameType | None) -> Any:
        raise KeyboardInterrupt

    # SIGINT too: a shell's background job starts with it ignored, and Python then makes no KeyboardInterrupt of it.
    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    except KeyboardInterrupt:
        say("kdelta serve: stopped", err=True)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
