"""What must hold of a run."""

import json
from collections import Counter
from statistics import median

import stays
from board import deeds
from crew import script
from crowd import PLAIN, REAL
from house import eventually
from linked import MEMBERS
from meter import MB
from post import LEAD

WANTED = ["pending", "in_progress", "completed"]


def files_of(house):
    return stays.house_files(house)


def mail(report, soak):
    """Every message that was acknowledged was told, once; any other once at most."""
    for where, post in (("on one host", soak.house.post), ("on two hosts", soak.linked.post)):
        sent, lost = post.acknowledged, post.missing()
        report.check(f"{where}: none of {len(sent)} acknowledged messages is lost", not lost, lost)
        unsure = [mark for mark in post.letters if mark not in sent]
        came = sum(mark in post.told for mark in unsure)
        report.figure(f"{where}: written and not acknowledged", f"{len(unsure)}, of which {came} came all the same")
        twice, rewritten = post.twice()
        if post is soak.house.post:
            report.figure("written again by a model that no longer knew it had", [*rewritten] or 0)
        report.check(f"{where}: none is told twice", not twice, twice)
        ways = Counter((kind(letter.by), kind(letter.to)) for mark, letter in post.letters.items() if mark in sent)
        report.figure(f"{where}: who wrote to whom", ", ".join(f"{by} to {to} {n}" for (by, to), n in sorted(ways.items())))
        delays = post.delays()
        if delays:
            half, most = delays[len(delays) // 2], delays[len(delays) * 99 // 100]
            report.figure(f"{where}: seconds from acknowledged to seen told", f"p50 {half:.1f}, p99 {most:.1f}, most {delays[-1]:.1f}")
    for name, ear in soak.house.ears.items():
        lost = ear.forgotten()
        words = f"{name}: its last request has all it was ever told ({ear.requests} requests, the longest {ear.longest / MB:.1f} MB)"
        report.check(words, not lost, lost)


def kind(name):
    return "lead" if name == LEAD else "agents" if name in REAL else "others"


def tasks(report, soak):
    for where, house in (("on one host", soak.house), ("on two hosts", soak.linked)):
        found = deeds(house)
        odd = {number: deed.steps for number, deed in found.items() if deed.steps != WANTED}
        if house is soak.linked:
            # What a host did while it was cut off comes over at once.
            odd = {number: steps for number, steps in odd.items() if steps != [WANTED[0], WANTED[-1]]}
        report.check(f"{where}: each of {len(found)} tasks was taken once and completed once", found and not odd, odd)
        members = {*REAL, *PLAIN} if house is soak.house else {name for names in MEMBERS.values() for name in names}
        by = Counter(deed.owner for deed in found.values() if deed.owner)
        report.check(f"{where}: everybody did some", set(by) == members, by)
        report.figure(f"{where}: who did how many", dict(sorted(by.items())))
    report.figure("reminders of the lead's", soak.board.reminders)


def load(report, soak):
    """What was done to them, and what it cost."""
    havoc, linked = soak.havoc, soak.linked
    kills = Counter(kind for _, kind, _ in (*havoc.kills, *linked.kills))
    report.figure("killed", f"{sum(n for _, _, n in havoc.kills)} processes: {dict(kills)}")
    took = sorted(havoc.resume_took)
    report.figure("brigade resume", f"{havoc.resumes} times, p50 {median(took):.1f} s, most {took[-1]:.1f} s")
    report.figure("given up, and brought back by it", dict(Counter(havoc.brought_back)))
    report.check("brigade resume succeeds each time", not havoc.trouble, havoc.trouble)
    report.figure("somebody was not ready within the two minutes that it waits", havoc.late)
    cut = sum(ended - begun for begun, ended in linked.cuts)
    report.figure("the second host was cut off", f"{len(linked.cuts)} times, {cut:.0f} s in all")
    killed = soak.house.killed_commands + linked.killed_commands
    report.figure("commands that were killed", killed)
    failures = soak.house.failures + linked.failures
    report.check("no command fails that is not killed", not failures, dict(failures.most_common(8)))
    shares = [sample["processor"] for sample in soak.meter.samples[1:]]
    report.figure("of all cores, by all of this", f"{100 * sum(shares) / max(len(shares), 1):.0f} %")


def part(report, soak):
    """The real agents are asked to stop, and agree: the others have no model that could. Both teams go down, and no
    process is left."""
    house, linked = soak.house, soak.linked
    ask = ["--json", "--limit", "90", "--reason"]
    leaving = {name: house.start("stop", name, *ask, script(*REAL[name].goodbye(name))) for name in REAL}
    ended = {}
    for name, process in leaving.items():
        out, err = process.communicate(timeout=200)
        ended[name] = json.loads(out)["members"][0]["ended"] if out.strip() else err
    report.check("asked to stop, the real agents agree", set(ended.values()) == {"agreed"}, ended)
    house.do("down", "--now")
    report.check("on one host: no process is left", not house.nobody(20), house.nobody(0))
    linked.down()
    eventually(lambda: not linked.left(), 20)
    report.check("on two hosts: no process is left", not linked.left(), linked.left())


def growth(report, soak):
    """What lasts stays as it was, in memory, descriptors and on the disk."""
    first, last = soak.middle
    soak.meter.check(report, first, last, soak.lasting())
    soak.meter.check_disk(report, first, last)
    looked = [sample for sample in soak.meter.samples if "disk" in sample and sample["t"] < last]
    for home in looked[-1]["disk"] if looked else ():
        one, other = (sample["disk"][home] for sample in (looked[0], looked[-1]))
        told = max(looked[-1]["told"] - looked[0]["told"], 1)
        words = f"{(other['journals'] - one['journals']) / MB:.1f} MB of mail, board and roster, {(other['work'] - one['work']) / MB:.1f} MB of work"
        if home == "files":
            words += f"; for each of {told} messages told {(other['journals'] - one['journals']) / told / 1000:.2f} kB and {(other['work'] - one['work']) / told / 1000:.2f} kB"
        report.figure(f"{home}: journals grew by", words)


def litter(report, house, before):
    stays.litter(house, report, before)
    answering = [path.name for path in (house.root / "tmp").glob("tmux-*/*") if stays.answers(path)]
    report.check("no server of tmux is left", not answering, answering)
