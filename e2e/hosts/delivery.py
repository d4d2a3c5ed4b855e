"""Checks, in the requests of the models and in the mailboxes, that every task was done once and every message
delivered once."""

from collections import Counter

from host_env import marks


def check_tasks(dispatcher, histories, report):
    """Checks that each task was completed by its owner's model only."""
    by = {}
    for name, member in dispatcher.members.items():
        for _, arguments, _ in member.calls():
            if arguments.get("status") == "completed":
                by.setdefault(str(arguments["taskId"]), set()).add(name)
    wrong = {number: names for number, names in by.items() if names != {dispatcher.owners[number]}}
    complete = not wrong and len(by) == len(histories)
    report.check("each task was completed by its owner's model and by no other model", complete, wrong)


def check_messages(dispatcher, report):
    """Checks that each model received every message once. A message whose sender got an error may have arrived
    too, but at most once."""
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
    counts = f"{len(sent) - across} from the lead, {across} between members on different hosts"
    report.figure("messages", f"{counts}; sending {len(failed)} failed")


def check_signatures(hosts, report):
    """Checks that a Claude Code with the lead's key accepts the lead's messages as verified, even from another
    host."""
    for host in hosts:
        if host.version == "new":
            received = host.native.input().replace('\\"', '"')
            verified = 'teammate_id="team-lead"' in received and 'verified="false"' not in received
            report.check(f"{host.native.name}: the lead's messages are verified", verified)


def check_mailboxes(dispatcher, hosts, report):
    """Checks that the NATS store accepted each message once, and that no mailbox, in the NATS store or in files,
    contains a message twice."""
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
        report.check(f"{place}: none of {len(counts)} messages is twice in a mailbox", not twice, twice)


def own_marks(name, text):
    """Returns the marks of messages to this member. The script inside a message may contain marks of other
    messages."""
    return [mark for mark in marks(text) if mark.startswith(f"«{name} ")]
