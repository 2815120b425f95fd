# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta fleet: the hosts that measure for the team, what they do and what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kdelta.cli import _fleet, _session
from kdelta.cli._say import say

if TYPE_CHECKING:
    from kdelta.fleet.status import Fleet

EPILOG = """\b
Examples:
  kdelta fleet
  kdelta fleet --json
  kdelta fleet --cancel 20261122-140730-294a

Work comes from kdelta compare --fleet; hosts join with kdelta worker.
"""


@click.command(epilog=EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.option("--cancel", metavar="EXPERIMENT", help="Measure no more of an experiment; finished boots are kept.")
def command(as_json: bool, cancel: str | None) -> int:
    """Show the fleet's hosts, running blocks, time left and failures."""
    from kdelta.fleet import status

    with _fleet.opened() as ledger, _session.opened() as session:
        if cancel is not None:
            found = session.store.id_of(cancel)
            status.cancel(session.store, ledger, found)
            say(f"{found}: cancelled; kdelta resume {found} --fleet goes on with it")
            return 0
        now = status.look(session.store, ledger)
    if as_json:
        import msgspec

        say(msgspec.json.format(msgspec.json.encode(now), indent=2).decode())
    else:
        _show(now)
    return 0


def _show(now: Fleet) -> None:
    if not now.hosts:
        say("no hosts: start a worker on each with: kdelta worker")
    for host in now.hosts:
        state = f"silent for {host.silent_s:.0f} s" if host.dead else ", ".join(host.doing) or "idle"
        more = f"{', KVM' if host.kvm else ''}{''.join(f', drives {name}' for name in host.machines)}"
        say(
            f"{host.name:16} {_count(host.slots, 'slot')}, kdelta {host.version}, QEMU {host.qemu or 'none'}{more}: {state}"
        )
    for one in now.experiments:
        left = "" if one.left_s is None else f", about {_duration(one.left_s)} to its next look"
        doing = f"{_count(one.boots, 'boot')} stored, {_count(one.doing, 'unit')} running, {one.waiting} waiting"
        say(f"{one.experiment:22} {doing}{left}")
        if one.why:
            say(f"{'':22} {one.why}")
    for build in now.builds:
        say(f"build of {build.kernel}: {f'on {build.host}, {build.said or build.kernel}' if build.host else 'waiting'}")
    if not now.experiments and not now.builds:
        say("nothing is waiting")
    for failure in now.failures:
        on = f" on {failure.host}" if failure.host else ""
        say(f"failed: {failure.at[:19]} {failure.experiment} unit {failure.unit}{on}: {failure.why}")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s'[: number != 1]}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
