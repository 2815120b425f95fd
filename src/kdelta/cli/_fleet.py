# SPDX-License-Identifier: GPL-2.0-or-later
"""--fleet: the boots of an experiment are made by the team's hosts instead of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from kdelta.cli import _kernels, _usual, common
from kdelta.cli._say import say
from kdelta.errors import HostError, KdeltaError, UserError

if TYPE_CHECKING:
    from kdelta.cli._session import Session
    from kdelta.experiment.laboratory import Hands
    from kdelta.experiment.templates import Asked
    from kdelta.fleet.ledger import Ledger
    from kdelta.model import Experiment, Kernel, Progress
    from kdelta.spec.kernels import KernelSpec
    from kdelta.store.store import Store

options = common.decorate(
    click.option("--fleet", is_flag=True, help="Let the hosts of the fleet make the boots (kdelta fleet shows them)."),
    click.option("--detach", is_flag=True, help="With --fleet: return at once; kdelta report shows what there is."),
)


@dataclass(frozen=True, kw_only=True)
class FleetArgs:
    """Values of ``options``."""

    fleet: bool
    detach: bool

    def refuse(self, *, budget: bool, others: Mapping[str, object]) -> None:
        """Refuse what cannot be, before anything is fetched; ``others``: options that need the result here.

        Raises:
            UserError: --detach without --fleet, a --time-budget with it, or no PostgreSQL.
        """
        if self.detach and not self.fleet:
            raise UserError("--detach goes with --fleet")
        if self.detach and (wanted := [name for name, value in others.items() if value]):
            raise UserError(f"{wanted[0]} waits for the result: leave out --detach")
        if self.fleet and budget:
            raise UserError("--time-budget is of one machine: leave it out with --fleet")
        if self.fleet:
            with opened():
                pass


@contextmanager
def opened() -> Iterator[Ledger]:
    """The fleet of the store that this user has chosen.

    Raises:
        UserError: that is no PostgreSQL.
    """
    from kdelta import paths
    from kdelta.fleet.ledger import Ledger, require

    require(paths.store_url())
    ledger = Ledger(paths.store_url())
    try:
        yield ledger
    finally:
        ledger.close()


def refuse(asked: Asked) -> None:
    """Raises:
    UserError: what is asked needs files or programs of this machine.
    """
    from kdelta.fleet import needs

    needs.refuse_asked(asked.machine)


def machine(name: str) -> dict[str, str]:
    """What the machine ``name`` of a lab is, by the worker that drives it.

    Raises:
        UserError: none does.
    """
    from kdelta.fleet import asking

    with opened() as ledger:
        found = [host.machines[name] for host in asking.alive(ledger.hosts()) if name in host.machines]
    if not found:
        raise UserError(f"--on {name}: no worker drives it: start one with kdelta worker --on FILE:{name}")
    return found[0]


def refuse_planned(template: Experiment) -> None:
    """``refuse``, and what the plan makes impossible."""
    from kdelta.fleet import needs

    needs.refuse(template)


def built(
    args: FleetArgs, specs: Sequence[KernelSpec], progress: Progress, *, each: bool = False, first: bool = True
) -> Mapping[KernelSpec, KdeltaError]:
    """Have the hosts build what of ``specs`` is to be built; this machine has it then. Without --fleet nothing is done.

    Returns:
        what cannot be built; () with ``first``, where the first of these is raised.

    Raises:
        UserError: a tree, a ref or a patch that is none. HostError: a kernel that does not build, or no way there.
    """
    if not args.fleet:
        return {}
    from kdelta.fleet import building

    _kernels.one_architecture(specs)
    with opened() as ledger:
        return building.built(ledger, specs, progress, each=each, first=first)


def run(
    session: Session,
    experiment: Experiment,
    args: FleetArgs,
    progress: Progress,
    budget_s: float | None = None,
    resumed_as: Experiment | None = None,
) -> bool:
    """Have what is left of ``experiment`` measured, here or by the fleet; false where nobody waits (--detach).

    ``resumed_as``: the experiment to go on with, where this one is only a pass of it.

    Raises:
        UserError: the fleet cannot measure it. HostError: it gave up.
    """
    if not args.fleet or not experiment.cases:
        refuse_asked(
            session.store,
            experiment.id,
            f"wait for it with kdelta resume {(resumed_as or experiment).id} --fleet, or take it back first",
        )
        session.run(experiment, progress, budget_s, resumed_as)
        return True
    from kdelta.fleet import asking

    name = (resumed_as or experiment).id
    with opened() as ledger:
        wanted = asking.ask(session.store, ledger, experiment, progress)
        asking.begin(session.store, ledger, experiment.id)
        if args.detach:
            asking.told(ledger, wanted, progress)
            return False
        _expect(session, experiment, progress, asking.lanes(ledger, wanted))
        try:
            asking.wait(session.store, ledger, experiment, wanted, progress)
        except KeyboardInterrupt as ending:
            ending.add_note(
                f"the fleet goes on; wait again with: kdelta resume {name} --fleet, "
                f"or stop it with: kdelta fleet --cancel {name}"
            )
            raise
        except HostError as error:
            again = f"kdelta resume {name} --fleet"
            raise HostError(f"{error}; finished boots are kept, continue with: {again}") from None
    return True


def refuse_asked(store: Store, experiment: str, remedy: str) -> None:
    """Raises:
    UserError: the fleet of the store has ``experiment`` to measure; ``remedy`` says what can be done.
    """
    if _is_open(store, experiment):
        raise UserError(f"the fleet measures experiment {experiment}: {remedy}: kdelta fleet --cancel {experiment}")


def note_open(store: Store, experiment: str) -> str:
    """What to say below the report of an experiment that the fleet has not finished; "" of any other."""
    if not _is_open(store, experiment):
        return ""
    return f"the fleet measures this experiment: kdelta fleet shows how far, kdelta resume {experiment} --fleet waits"


def _is_open(store: Store, experiment: str) -> bool:
    if not store.address.startswith("postgresql"):
        return False
    from kdelta.fleet import asking

    return asking.is_open(store.address, experiment)


def _expect(session: Session, experiment: Experiment, progress: Progress, at_once: int) -> None:
    """Tell ``progress`` how long a boot usually takes where so many are made at once."""
    from kdelta.cli.progress import Reporter

    if at_once and isinstance(progress, Reporter):
        progress.expect(_usual.boot_s(session.store, experiment, at_once))


def hands(session: Session, args: FleetArgs, experiment: Experiment, progress: Progress) -> Hands | None:
    """Those of the fleet for the bisection ``experiment``; None where this machine does it.

    Raises:
        UserError: the fleet cannot measure it.
    """
    if not args.fleet:
        return None
    from kdelta.experiment.laboratory import Hands
    from kdelta.kernel.resolve import resolve

    refuse_planned(experiment)

    def take(spec: KernelSpec, said: Progress) -> Kernel:
        built(args, [spec], said)
        return resolve(spec, said)

    def run_one(one: Experiment) -> None:
        run(session, one, args, progress)

    return Hands(take, run_one)


def detached(experiment: Experiment) -> int:
    """Say how to go on."""
    say(experiment.id)
    say(f"the fleet measures it: kdelta fleet, kdelta report {experiment.id}", err=True)
    return 0
