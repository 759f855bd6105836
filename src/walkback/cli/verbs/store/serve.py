"""`walkback store DIR serve`: a store in a browser, by a page that asks for what is looked at."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING

import click

from walkback.cli.command import verb
from walkback.cli.output import EXIT_FINE, complain, guarded
from walkback.cli.searching import file_options
from walkback.cli.walking import DEMANGLE, INLINE, SHORT_NAMES, how_to_name

if TYPE_CHECKING:
    from walkback.cli.searching import Searching


@verb("walkback store stacks serve", "walkback store stacks serve --short-names")
@click.option("--host", metavar="NAME", default="127.0.0.1", show_default=True, help="Listen on this address.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Listen on this port; 0 is any that is free. [default: 8370, or if that is taken any that is free]",
)
@click.option("--token/--no-token", default=True, help="Answer only who has the token that the printed address has.")
@file_options
@DEMANGLE
@SHORT_NAMES
@INLINE
@click.pass_context
def serve(
    ctx: click.Context,
    /,
    host: str,
    port: int | None,
    token: bool,
    searching: Searching,
    demangle: bool,
    short_names: bool,
    inline: bool,
) -> None:
    """Show samples over time, and graphs of them, in a browser.

    Prints the address of the page, and serves it until Ctrl-C, which ends it with exit status 0.
    """

    def work(folder: str) -> int:
        from walkback.base.errors import ArgumentError
        from walkback.serving.answers import Answers
        from walkback.serving.server import StoreServer
        from walkback.store.naming import Naming
        from walkback.store.store import Store

        def naming() -> Naming:
            return Naming(searching.search, how_to_name(demangle, short_names), inline=inline)

        answers = Answers(Store(folder), naming)
        try:
            server = StoreServer(
                answers, lambda line: complain(f"{folder}: {line}"), host=host, port=port, needs_token=token
            )
        except ArgumentError as error:
            raise click.UsageError(str(error)) from None
        with contextlib.suppress(KeyboardInterrupt), server:
            click.echo(server.url)
            # A client that is gone ends its request, and not the command.
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
            server.serve_forever()
        return EXIT_FINE

    ctx.exit(guarded(work, ctx.obj, ctx.obj))
