"""The checks at the end of a soak test."""

from collections import Counter
from statistics import median

from linked import LINKED
from mail_log import LEAD
from meter import MB
from soak_team import PLAIN, REAL

from lib.task_graph import STATUSES, task_histories
from lib.util import eventually


def check_mail(report, soak):
    """Checks that every acknowledged message was received once, and any other message at most once."""
    for where, mail_log in (("on one host", soak.env.mail_log), ("on two hosts", soak.linked.mail_log)):
        sent, lost = mail_log.acknowledged, mail_log.missing()
        report.check(f"{where}: none of {len(sent)} acknowledged messages is lost", not lost, lost)
        unacknowledged = [mark for mark in mail_log.messages if mark not in sent]
        arrived = sum(mark in mail_log.received for mark in unacknowledged)
        report.figure(f"{where}: messages without an acknowledgement", f"{len(unacknowledged)}, of which {arrived} arrived")
        repeated, resent = mail_log.repeated()
        if mail_log is soak.env.mail_log:
            report.figure("messages sent again by a model whose session did not record the first time", [*resent] or 0)
        report.check(f"{where}: no message is received twice", not repeated, repeated)
        routes = Counter(
            (kind(message.by), kind(message.to)) for mark, message in mail_log.messages.items() if mark in sent
        )
        line = ", ".join(f"{by} to {to} {count}" for (by, to), count in sorted(routes.items()))
        report.figure(f"{where}: messages by sender and recipient", line)
        if delays := mail_log.delays():
            p50, p99 = delays[len(delays) // 2], delays[len(delays) * 99 // 100]
            line = f"p50 {p50:.1f}, p99 {p99:.1f}, max {delays[-1]:.1f}"
            report.figure(f"{where}: seconds from a message's acknowledgement to its receipt", line)
    for name, reader in soak.env.readers.items():
        lost = reader.forgotten()
        size = f"{reader.requests} requests, the longest {reader.longest / MB:.1f} MB"
        report.check(f"{name}: its last request has every message it ever received ({size})", not lost, lost)


def kind(name):
    return "lead" if name == LEAD else "agents" if name in REAL else "others"


def check_tasks(report, soak):
    for where, team in (("on one host", soak.env), ("on two hosts", soak.linked)):
        histories = task_histories(team)
        wrong = {number: history.statuses for number, history in histories.items() if history.statuses != STATUSES}
        if team is soak.linked:
            # A task may change several times on a host that is cut off. Only the last change reaches the journal.
            wrong = {number: found for number, found in wrong.items() if found != [STATUSES[0], STATUSES[-1]]}
        report.check(
            f"{where}: each of {len(histories)} tasks was claimed once and completed once", histories and not wrong, wrong
        )
        members = {*REAL, *PLAIN} if team is soak.env else {name for names in LINKED.values() for name in names}
        done_by = Counter(history.owner for history in histories.values() if history.owner)
        report.check(f"{where}: every member did a task", set(done_by) == members, done_by)
        report.figure(f"{where}: tasks by member", dict(sorted(done_by.items())))
    report.figure("reminders sent by the lead", soak.board.reminders)


def check_faults(report, soak):
    """Reports the kills and network cuts, and checks that the commands that ran meanwhile succeeded."""
    faults, linked = soak.faults, soak.linked
    kills = Counter(kind for _, kind, _ in (*faults.kills, *linked.kills))
    report.figure("killed", f"{sum(count for _, _, count in faults.kills)} processes: {dict(kills)}")
    took = sorted(faults.resume_seconds)
    report.figure("brigade resume", f"{len(took)} times, p50 {median(took):.1f} s, max {took[-1]:.1f} s")
    report.figure("members that were marked failed and that brigade resume restarted", dict(Counter(faults.restarted)))
    report.check("brigade resume succeeds each time", not faults.resume_errors, faults.resume_errors)
    report.figure("members that were not ready after two minutes of brigade resume", faults.resume_timeouts)
    cut = sum(ended - started for started, ended in linked.cuts)
    report.figure("the second host was cut off", f"{len(linked.cuts)} times, {cut:.0f} s in total")
    report.figure("commands that were killed", soak.env.commands.killed + linked.commands.killed)
    failures = soak.env.commands.failures + linked.commands.failures
    report.check("every command that is not killed succeeds", not failures, dict(failures.most_common(8)))
    shares = [sample["cpu"] for sample in soak.meter.samples[1:]]
    report.figure("share of all cores that the test used", f"{100 * sum(shares) / max(len(shares), 1):.0f} %")


def shut_down(report, soak):
    """Asks the real agents to stop, and takes both teams down. The other agents have no model that could agree to
    stop."""
    env, linked = soak.env, soak.linked
    ended = env.ask_to_stop(REAL, limit=90, timeout=200)
    report.check("the real agents agree to stop", set(ended.values()) == {"agreed"}, ended)
    env.run_ok("down", "--now")
    env.check_no_process_left(report, "on one host: no process is left", 20)
    linked.down()
    eventually(lambda: not linked.left(), 20)
    report.check("on two hosts: no process is left", not linked.left(), linked.left())


def check_growth(report, soak):
    """Checks that long-lived processes do not use more and more memory, file descriptors and files."""
    first, last = soak.calm
    soak.meter.check_processes(report, first, last, soak.long_lived())
    soak.meter.check_disk(report, first, last)
    samples = [sample for sample in soak.meter.samples if "disk" in sample and sample["t"] < last]
    for home in samples[-1]["disk"] if samples else ():
        one, other = (sample["disk"][home] for sample in (samples[0], samples[-1]))
        received = max(samples[-1]["received"] - samples[0]["received"], 1)
        journals, work = (other[key] - one[key] for key in ("journals", "work"))
        line = f"{journals / MB:.1f} MB of mail, board and roster, {work / MB:.1f} MB of work"
        if home == "files":
            line += f"; per received message, of {received}: {journals / received / 1000:.2f} kB and {work / received / 1000:.2f} kB"
        report.figure(f"{home}: journals grew by", line)
