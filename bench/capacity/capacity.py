"""Computes the servers, disks, memory and cores that the NATS store needs for a workload, and the cost of a million messages.

The constants in constants.json were measured; each names its command. The assumptions are guesses: change them with --assume.
The numbers in parentheses are those of the plans small, medium and internet.
"""

import argparse
import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path

from model import CapacityError, Model, Workload

HERE = Path(__file__).resolve().parent
PLANS = {
    "small": Workload(1, 10, 60, 5_000, 30, 20, 3),
    "medium": Workload(100, 2_000, 12_000, 1_000_000, 30, 4_000, 3),
    "internet": Workload(10_000, 166_667, 1_000_000, 1_000_000_000 / 30, 30, 166_667, 3),
}
MAY_BE_ZERO = ("running_share", "tool_calls_per_message", "task_changes_per_message", "starts_per_member_day")
HELP = {
    "organisations": "organisations; each has its own accounts and streams",
    "teams": "teams of all organisations together",
    "members": "members of all teams together, running or not",
    "messages_per_day": "messages that members get on a day; each causes a turn of the member's agent",
    "retention_days": "for how many days the streams keep messages",
    "hosts": "hosts on which members run",
    "replicas": "servers that store each message: 3, or 1 without protection from the loss of a disk",
}


def load_settings(path):
    """Returns the values of each group in a file of constants."""
    groups = json.loads(Path(path).read_text())
    return {group: {name: one["value"] for name, one in entries.items()} for group, entries in groups.items()}


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="bench/capacity/run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Other uses: --check [--short] compares predictions with measurements; --self-test tests the arithmetic.",
    )
    parser.add_argument("--plan", choices=PLANS, default="small", help="the workload (default: small); the options below change it")
    for name, text in HELP.items():
        option = "retention" if name == "retention_days" else name.replace("_", "-")
        kind = float if name in ("messages_per_day", "retention_days") else int
        metavar = "DAYS" if option == "retention" else "N"
        sizes = ", ".join(f"{getattr(plan, name):,.0f}" for plan in PLANS.values())
        parser.add_argument(f"--{option}", dest=name, type=kind, metavar=metavar, help=f"{text} ({sizes})")
    parser.add_argument("--assume", action="append", default=[], metavar="NAME=VALUE", help="change an assumption or the machine, for example cores=32; can be repeated")
    parser.add_argument("--prices", metavar="FILE", help="print money too, with the prices in FILE (see prices.example.json)")
    parser.add_argument("--constants", metavar="FILE", default=HERE / "constants.json", help="use other constants")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser, parser.parse_args(arguments)


def apply_assumptions(settings, changes):
    for change in changes:
        name, equals, value = change.partition("=")
        group = next((group for group in ("assumptions", "machine") if name in settings[group]), None)
        if not equals or group is None:
            known = ", ".join([*settings["assumptions"], *settings["machine"]])
            raise CapacityError(f'--assume "{change}" is not NAME=VALUE with one of these names: {known}')
        try:
            settings[group][name] = float(value)
        except ValueError:
            raise CapacityError(f'--assume "{change}": "{value}" is not a number') from None
        least = 0 if name in MAY_BE_ZERO else 1e-9
        if not least <= settings[group][name] < float("inf"):
            raise CapacityError(f'--assume "{change}": the value must be greater than 0')


def money(plan, prices):
    """Returns what a million messages cost, and what all servers cost in a month."""
    cost = plan.per_million_messages
    per_million = (
        cost["provisioned_core_hours"] * prices["core_hour"]
        + cost["provisioned_memory_gb_months"] * prices["memory_gb_month"]
        + cost["provisioned_disk_gb_months"] * prices["disk_gb_month"]
    )
    return {
        "currency": prices["currency"],
        "per_million_messages": per_million,
        "per_month": per_million * plan.workload.messages_per_day * 30 / 1e6,
    }


def as_json(plan, settings, prices):
    answer = asdict(plan) | {"first_exhausted": plan.first_exhausted}
    answer |= {"assumptions": settings["assumptions"], "machine": settings["machine"]}
    if prices:
        answer["money_assumed"] = money(plan, prices)
    return json.dumps(answer, indent=2)


def number(value):
    """Formats a number with at most three significant digits after the point."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def as_text(plan, settings, prices):
    load, rates, one, cost = plan.workload, plan.rates, plan.per_server, plan.per_million_messages
    machine = settings["machine"]
    lines = [
        f"{load.organisations:,} organisations, {load.teams:,} teams, {load.members:,} members on {load.hosts:,} hosts, "
        f"{load.messages_per_day:,.0f} messages a day, kept {load.retention_days:g} days, {load.replicas} replicas",
        "",
        "layout",
        f"  clusters                    {plan.clusters:,} of {load.replicas} servers: {plan.servers:,} servers with "
        f"{machine['cores']:g} cores, {machine['memory_gb']:g} GB of memory, {machine['disk_gb']:g} GB of disk",
        f"  organisations per cluster   {number(one['organisations_per_cluster'])}",
        f"  shards per organisation     {plan.shards['average_organisation']}; the largest organisation: "
        f"{plan.shards['largest_organisation']}",
        f"  streams                     {plan.shards['streams']:,}; {number(one['streams'])} per cluster",
        "",
        "load",
        f"  messages per second         {number(rates['messages_per_second'])} on average, "
        f"{number(rates['peak_messages_per_second'])} at the peak",
        f"  writes per second           {number(rates['average_writes_per_second'])} on average, "
        f"{number(rates['peak_writes_per_second'])} at the peak; pulses: {number(rates['pulse_writes_per_second'])}",
        f"  writes per message          {number(rates['writes_per_message'])}",
        f"  connections                 {number(rates['connections'])}",
        "",
        "each server",
        f"  disk                        {number(one['disk_gb'])} GB",
        f"  memory                      {number(one['memory_gb'])} GB",
        f"  cores                       {number(one['cores'])}",
        f"  start after a kill          {number(one['restart_after_kill_seconds'])} s",
        "",
        f"{'exhausted first':<24} {'needed in total':>38} {'one cluster has':>16} {'clusters':>9}",
    ]
    for resource in plan.resources:
        needed = f"{number(resource.needed)} {resource.unit}"
        has, clusters = number(resource.per_cluster), number(resource.clusters)
        lines.append(f"  {resource.name:<22} {needed:>38} {has:>16} {clusters:>9}")
    lines += [
        "",
        "a million messages",
        f"  processor                   {number(cost['core_seconds_of_the_messages'])} core-seconds, and "
        f"{number(cost['core_seconds_of_pulses_and_idle_streams'])} for pulses and idle streams meanwhile",
        f"  disk                        {number(cost['disk_gb_months'])} GB-months on all replicas",
        f"  servers of the plan         {number(cost['provisioned_core_hours'])} core-hours, "
        f"{number(cost['provisioned_memory_gb_months'])} GB-months of memory, "
        f"{number(cost['provisioned_disk_gb_months'])} GB-months of disk",
    ]
    if prices:
        costs = money(plan, prices)
        lines.append(
            f"  ASSUMED prices              {number(costs['per_million_messages'])} {costs['currency']}; "
            f"{number(costs['per_month'])} {costs['currency']} a month for all servers"
        )
    guesses = ", ".join(f"{name}={value:g}" for name, value in settings["assumptions"].items())
    lines += ["", f"Guesses, change them with --assume: {guesses}"]
    lines += [f"warning: {warning}" for warning in plan.warnings]
    return "\n".join(lines)


def main(arguments):
    parser, options = parse(arguments)
    changed = {name: getattr(options, name) for name in HELP if getattr(options, name) is not None}
    try:
        settings = load_settings(options.constants)
        apply_assumptions(settings, options.assume)
        prices = json.loads(Path(options.prices).read_text()) if options.prices else None
        load = replace(PLANS[options.plan], **changed)
        plan = Model(settings["constants"], settings["assumptions"], settings["machine"]).plan(load)
        print(as_json(plan, settings, prices) if options.json else as_text(plan, settings, prices), flush=True)
    except CapacityError as error:
        parser.error(str(error))
    except BrokenPipeError:
        # The reader, for example `head`, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
