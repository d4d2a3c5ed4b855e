"""Generates a long journal of a busy team, which is the same in every run. Of every hundred records, 75 are about
messages (25 sent, 25 read, 25 shown), 15 are task changes, and 10 are work events."""

import json
from datetime import UTC, datetime

MEMBERS = tuple(f"member-{number}" for number in range(10))
LEAD = "team-lead"
TEXT = (
    "The date parser is done. It accepts the three formats of the specification, and reports the line of any other "
    "format. The empty cell in a required column is still open: for now it is an error. See the tests, the last two "
    "are about that."
)  # fmt: skip
TASKS = 400
# One in this many messages stays unread.
UNREAD = 49
# The time of the first record, in milliseconds since 1970.
START = 1_794_214_800_000


class Journal:
    """Generates records, and counts what the UI must show after the last record."""

    def __init__(self, started=START, step=40):
        self.first = started
        self._at, self._step = started, step
        self.records = 0
        self.unread = dict.fromkeys(MEMBERS, 0)
        self.received = dict.fromkeys(MEMBERS, 0)
        self.wrote = dict.fromkeys(MEMBERS, 0)
        self.turns = dict.fromkeys(MEMBERS, 0)
        self.tokens = dict.fromkeys(MEMBERS, 0)
        self.done = set()
        self.tasks = set()
        self._sent = 0
        self._worked = 0
        self._changes = 0
        self._pending = []

    def _record(self, by, event):
        self._at += self._step
        self.records += 1
        return f'{{"at":"{stamp(self._at)}","by":"{by}","event":{event}}}\n'

    def team_records(self):
        """Returns the records that create the team and add its members."""
        lead = (
            f'{{"agentId":"{LEAD}@test-team","name":"{LEAD}","joinedAt":{self._at},"tmuxPaneId":"","subscriptions":[],'
            f'"agentType":"{LEAD}","cwd":"/work","backendType":"process"}}'
        )
        team = f'{{"name":"test-team","createdAt":{self._at},"leadAgentId":"{LEAD}@test-team","members":[{lead}]}}'
        return [self._record(LEAD, f'{{"team_created":{{"team":{team}}}}}')] + self.join_records()

    def join_records(self):
        members = [
            f'{{"agentId":"{name}@test-team","name":"{name}","joinedAt":{self._at},"tmuxPaneId":"","subscriptions":[],'
            f'"agentType":"codex","cwd":"/work","backendType":"process"}}'
            for name in MEMBERS
        ]
        return [
            self._record(LEAD, f'{{"member":{{"name":"{name}","member":{member},"joined":true}}}}')
            for name, member in zip(MEMBERS, members)
        ]

    def more(self, count):
        """Generates records. Yields each with the name of its journal: `mail/NAME`, `work/NAME` or `team`."""
        for _ in range(count):
            turn = self.records % 20
            if turn % 4 != 3:
                yield self._mail(turn % 4)
            elif turn in (3, 11, 19):
                yield "team", self._task()
            else:
                yield self._work()

    def _mail(self, turn):
        """Returns the next mail record: first a message, then its `read` record, then its `shown` record."""
        if turn == 0:
            number = self._sent
            self._sent += 1
            to, by = MEMBERS[number % 10], MEMBERS[(number + 1 + number // 10 % 8) % 10]
            key = f"{(number + 1) * 0x9E3779B97F4A7C15 % (1 << 64) & ~1:016x}"
            reads = number % UNREAD != 0
            self.received[to] += 1
            self.wrote[by] += 1
            self.unread[to] += not reads
            self._pending = [("read", to, key), ("shown", to, key)] if reads else []
            message = (
                f'{{"from":"{by}","text":"Number {number} for {to}. {TEXT}","timestamp":"{stamp(self._at)}",'
                f'"msgV":1,"msg_id":"{key}","type":"message","read":false}}'
            )
            sent = f'{{"sent":{{"to":"{to}","key":"{key}","team_created":{START},"message":{message}}}}}'
            return f"mail/{to}", self._record(by, sent)
        if not self._pending:
            return self._work()
        event, to, key = self._pending.pop(0)
        return f"mail/{to}", self._record(to, f'{{"{event}":{{"to":"{to}","key":"{key}"}}}}')

    def open_turns(self, name):
        """Returns 1 if the member's last turn has not ended, else 0."""
        turn, step = divmod(self._worked, 6)
        return int(step > 0 and MEMBERS[turn % 10] == name)

    def _task(self):
        """Returns the next task record. Tasks go from pending to in progress to completed, and start over."""
        number, state = self._changes // 3 % TASKS + 1, self._changes % 3
        self._changes += 1
        self.tasks.add(number)
        (self.done.add if state == 2 else self.done.discard)(number)
        status = ("pending", "in_progress", "completed")[state]
        owner = MEMBERS[number % 10]
        before = f'"{number - 1}"' if number % 5 else ""
        task = (
            f'{{"id":"{number}","subject":"Task {number} of the long list","description":"{TEXT[:120]}",'
            f'"status":"{status}","owner":"{owner}","blocks":[],"blockedBy":[{before}]}}'
        )
        return self._record(owner, f'{{"task":{{"id":{number},"task":{task}}}}}')

    def _work(self):
        """Returns the next work record. One member after the other has a turn, and each turn has six events."""
        turn, step = divmod(self._worked, 6)
        self._worked += 1
        name = MEMBERS[turn % 10]
        if step == 4:
            self.tokens[name] += 1000
        self.turns[name] += step == 5
        act = (
            '{"turn_started":{}}',
            f'{{"tool_started":{{"id":"t{turn}","tool":"shell","about":"cargo test -p import --test rows {turn}"}}}}',
            f'{{"tool_ended":{{"id":"t{turn}","ok":true}}}}',
            f'{{"said":{{"text":"All {turn} tests of the rows pass; I continue with the next."}}}}',
            f'{{"used":{{"input":{self.tokens[name]},"output":{self.tokens[name] // 10}}}}}',
            '{"turn_ended":{"end":"done"}}',
        )[step]
        return f"work/{name}", self._record(name, f'{{"worked":{{"name":"{name}","act":{act}}}}}')


def stamp(at):
    second, milli = divmod(at, 1000)
    return f"{seconds(second)}.{milli:03}Z"


_latest = (None, None)


def seconds(second):
    """Formats a time, given in seconds. Cached, because most records have the same second as the record before."""
    global _latest
    if _latest[0] != second:
        _latest = (second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
    return _latest[1]


def write_replay(path, count):
    """Writes a journal file of `count` records, in the format of `brigade log --json`."""
    journal = Journal()
    with path.open("w") as file:
        file.writelines(journal.team_records())
        file.writelines(line for _, line in journal.more(count - journal.records))
    return journal


def write_team(folder, count, step):
    """Writes a team's journals into brigade's own folder. The last record has about the current time."""
    now = int(datetime.now(UTC).timestamp() * 1000)
    journal = Journal(now - (count + 20) * step, step)
    # Make the existing record of the team older than all new records.
    team = folder / "team.jsonl"
    created = [json.loads(line) | {"at": stamp(journal.first)} for line in team.read_text().split("\n") if line]
    team.write_text("".join(json.dumps(record) + "\n" for record in created))
    lines = {"team": journal.join_records()}
    for name, line in journal.more(count - journal.records):
        lines.setdefault(name, []).append(line)
    for name, records in lines.items():
        path = folder / f"{name}.jsonl"
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with path.open("a") as file:
            file.writelines(records)
    return journal
