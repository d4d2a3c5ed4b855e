"""Checks that every task was done once and every message delivered once: in the requests of the models, and in the
mailboxes."""

from collections import Counter

from host_env import marks


def check_tasks(dispatcher, histories, report):
    """Only the owner's model completed each task."""
    by = {}
    for name, member in dispatcher.members.items():
        for _, arguments, _ in member.calls():
            if arguments.get("status") == "completed":
                by.setdefault(str(arguments["taskId"]), set()).add(name)
    wrong = {number: names for number, names in by.items() if names != {dispatcher.owners[number]}}
    complete = not wrong and len(by) == len(histories)
    report.check("the model of the owner completed each task, and no other model did", complete, wrong)


def check_messages(dispatcher, report):
    """Each model received every message once. A message whose sender got an error may still have arrived, at most
    once."""
    sent = dispatcher.sent()
    failed = [message for message in dispatcher.messages if message not in sent]
    for name, member in dispatcher.members.items():
        own, received = [message for message in sent if message.to == name], member.input()
        times = {message.mark: received.count(message.mark) for message in own}
        wrong = {mark: count for mark, count in times.items() if count != 1}
        report.check(f"{name}: its model received each of {len(own)} messages once", not wrong, wrong)
    twice = [message for message in failed if dispatcher.members[message.to].input().count(message.mark) > 1]
    report.check("no message whose sender got an error arrived twice", not twice, twice)
    across = sum(message.by is not None for message in sent)
    counts = f"{len(sent) - across} of the lead's, {across} between members of different hosts"
    report.figure("messages", f"{counts}; {len(failed)} failed to be sent")


def check_signatures(hosts, report):
    """A Claude Code that has its lead's key accepts the lead's messages from another host."""
    for host in hosts:
        if host.version == "new":
            received = host.native.input().replace('\\"', '"')
            verified = 'teammate_id="team-lead"' in received and 'verified="false"' not in received
            report.check(f"{host.native.name}: the lead's messages are verified", verified)


def check_mailboxes(dispatcher, hosts, report):
    """The NATS store accepted each message once, and no mailbox has one twice, neither there nor in files."""
    events = [record["event"]["sent"] for record in hosts[0].log() if "sent" in record["event"]]
    stored = Counter((event["to"], mark) for event in events for mark in own_marks(event["to"], event["message"]["text"]))
    wrong = {message: times for message in dispatcher.sent() if (times := stored[message.to, message.mark]) != 1}
    wrong |= {key: times for key, times in stored.items() if times > 1}
    report.check("the NATS store accepted each message once", not wrong, wrong)
    in_store = [(name, entry["text"]) for name in dispatcher.members for entry in hosts[0].mailbox(name)]
    places = {"the NATS store": in_store} | {host.machine.name: list(host.texts()) for host in hosts}
    for place, texts in places.items():
        counts = Counter((name, mark) for name, text in texts for mark in own_marks(name, text))
        twice = {key: times for key, times in counts.items() if times > 1}
        report.check(f"{place}: none of {len(counts)} messages is in a mailbox twice", not twice, twice)


def own_marks(name, text):
    """The marks of messages to this member; the script in a message may contain marks of others."""
    return [mark for mark in marks(text) if mark.startswith(f"«{name} ")]
