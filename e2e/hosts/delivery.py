"""That everything was done once and told once, by what the models were asked and by what is in the mailboxes."""

from collections import Counter

from homes import marks


def tasks(foreman, found, report):
    """Every task was completed by its owner's model alone."""
    by = {}
    for name, member in foreman.members.items():
        for _, arguments, _ in member.calls():
            if arguments.get("status") == "completed":
                by.setdefault(str(arguments["taskId"]), set()).add(name)
    odd = {number: names for number, names in by.items() if names != {foreman.owners[number]}}
    whole = not odd and len(by) == len(found)
    report.check("each task was completed by the model it was given to, and no other", whole, odd)


def letters(foreman, report):
    """Every message was told the model it was for once. What its sender was told has failed may have come all
    the same, once at most."""
    sent = foreman.sent()
    unsure = [letter for letter in foreman.letters if letter not in sent]
    for name, member in foreman.members.items():
        mine, told = [letter for letter in sent if letter.to == name], member.told()
        times = {letter.mark: told.count(letter.mark) for letter in mine}
        odd = {mark: count for mark, count in times.items() if count != 1}
        report.check(f"{name}: each of {len(mine)} messages was told its model once", not odd, odd)
    twice = [letter for letter in unsure if foreman.members[letter.to].told().count(letter.mark) > 1]
    report.check("what failed to be sent was told nobody twice", not twice, twice)
    across = sum(letter.by is not None for letter in sent)
    words = f"{len(sent) - across} of the lead's, {across} between members of different hosts"
    report.figure("messages", f"{words}; {len(unsure)} failed to be sent")


def signed(homes, report):
    """A Claude Code that has a key of its lead's takes what comes from another host in the lead's name for the
    lead's."""
    for home in homes:
        if home.version == "new":
            told = home.native.told().replace('\\"', '"')
            known = 'teammate_id="team-lead"' in told and 'verified="false"' not in told
            report.check(f"{home.native.name}: what the lead says is the lead's", known)


def mailboxes(foreman, homes, report):
    """No message goes round: the engine took each once, and none is in a mailbox twice, there or in files."""
    events = [record["event"]["sent"] for record in homes[0].log() if "sent" in record["event"]]
    taken = Counter((its["to"], mark) for its in events for mark in own(its["to"], its["message"]["text"]))
    wrong = {letter: times for letter in foreman.sent() if (times := taken[letter.to, letter.mark]) != 1}
    wrong |= {key: times for key, times in taken.items() if times > 1}
    report.check("the engine took each message once", not wrong, wrong)
    engine = [(name, entry["text"]) for name in foreman.members for entry in homes[0].mailbox(name)]
    places = {"the engine": engine} | {home.machine.name: list(home.texts()) for home in homes}
    for place, texts in places.items():
        counts = Counter((name, mark) for name, text in texts for mark in own(name, text))
        twice = {key: times for key, times in counts.items() if times > 1}
        report.check(f"{place}: none of {len(counts)} messages is in a mailbox twice", not twice, twice)


def own(name, text):
    """The mark of a message to this member; its script may hold those of others."""
    return [mark for mark in marks(text) if mark.startswith(f"«{name} ")]
