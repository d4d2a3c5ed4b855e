"""A long journal of a busy team, made up: of a hundred records 25 are messages, 25 say that one was read and 25
that it was shown, 15 change a task and 10 tell of work. The same in every run."""

import json
from datetime import UTC, datetime

MEMBERS = tuple(f"member-{number}" for number in range(10))
LEAD = "team-lead"
WORDS = (
    "The reader of the dates is through; it takes the three forms of the description and says of any other on "
    "which line it stands. What is still open is the empty cell in a column that is wanted: I have it refused for "
    "now. See the tests, the last two are about that."
)  # fmt: skip
TASKS = 400
# One message of so many stays unread.
UNREAD = 49
# When the journal begins, in milliseconds.
BEGUN = 1_794_214_800_000


class Journal:
    """Gives one record after the other, and knows what a screen must say of them in the end."""

    def __init__(self, begun=BEGUN, step=40):
        self.first = begun
        self._at, self._step = begun, step
        self.records = 0
        self.unread = dict.fromkeys(MEMBERS, 0)
        self.letters = dict.fromkeys(MEMBERS, 0)
        self.wrote = dict.fromkeys(MEMBERS, 0)
        self.turns = dict.fromkeys(MEMBERS, 0)
        self.tokens = dict.fromkeys(MEMBERS, 0)
        self.done = set()
        self.tasks = set()
        self._sent = 0
        self._worked = 0
        self._changes = 0
        self._fates = []

    def _record(self, by, event):
        self._at += self._step
        self.records += 1
        return f'{{"at":"{stamp(self._at)}","by":"{by}","event":{event}}}\n'

    def beginning(self):
        """The team and its members, as records."""
        lead = (
            f'{{"agentId":"{LEAD}@proof","name":"{LEAD}","joinedAt":{self._at},"tmuxPaneId":"","subscriptions":[],'
            f'"agentType":"{LEAD}","cwd":"/work","backendType":"process"}}'
        )
        team = f'{{"name":"proof","createdAt":{self._at},"leadAgentId":"{LEAD}@proof","members":[{lead}]}}'
        return [self._record(LEAD, f'{{"team_created":{{"team":{team}}}}}')] + self.joining()

    def joining(self):
        members = [
            f'{{"agentId":"{name}@proof","name":"{name}","joinedAt":{self._at},"tmuxPaneId":"","subscriptions":[],'
            f'"agentType":"codex","cwd":"/work","backendType":"process"}}'
            for name in MEMBERS
        ]
        return [
            self._record(LEAD, f'{{"member":{{"name":"{name}","member":{member},"joined":true}}}}')
            for name, member in zip(MEMBERS, members)
        ]

    def more(self, count):
        """So many records, each with the journal it belongs to: `mail/NAME`, `work/NAME` or `team`."""
        for _ in range(count):
            turn = self.records % 20
            if turn % 4 != 3:
                yield self._mail(turn % 4)
            elif turn in (3, 11, 19):
                yield "team", self._task()
            else:
                yield self._work()

    def _mail(self, turn):
        """A message, and in the next two records what became of it."""
        if turn == 0:
            number = self._sent
            self._sent += 1
            to, by = MEMBERS[number % 10], MEMBERS[(number + 1 + number // 10 % 8) % 10]
            key = f"{(number + 1) * 0x9E3779B97F4A7C15 % (1 << 64) & ~1:016x}"
            reads = number % UNREAD != 0
            self.letters[to] += 1
            self.wrote[by] += 1
            self.unread[to] += not reads
            self._fates = [("read", to, key), ("shown", to, key)] if reads else []
            message = (
                f'{{"from":"{by}","text":"Number {number} for {to}. {WORDS}","timestamp":"{stamp(self._at)}",'
                f'"msgV":1,"msg_id":"{key}","type":"message","read":false}}'
            )
            sent = f'{{"sent":{{"to":"{to}","key":"{key}","team_created":{BEGUN},"message":{message}}}}}'
            return f"mail/{to}", self._record(by, sent)
        if not self._fates:
            return self._work()
        fate, to, key = self._fates.pop(0)
        return f"mail/{to}", self._record(to, f'{{"{fate}":{{"to":"{to}","key":"{key}"}}}}')

    def begun_by(self, name):
        """How many turns of a member have begun and not ended: one at most."""
        turn, step = divmod(self._worked, 6)
        return int(step > 0 and MEMBERS[turn % 10] == name)

    def _task(self):
        """A task goes from pending over in progress to done, and begins anew."""
        number, state = self._changes // 3 % TASKS + 1, self._changes % 3
        self._changes += 1
        self.tasks.add(number)
        (self.done.add if state == 2 else self.done.discard)(number)
        status = ("pending", "in_progress", "completed")[state]
        owner = MEMBERS[number % 10]
        before = f'"{number - 1}"' if number % 5 else ""
        task = (
            f'{{"id":"{number}","subject":"Task {number} of the long list","description":"{WORDS[:120]}",'
            f'"status":"{status}","owner":"{owner}","blocks":[],"blockedBy":[{before}]}}'
        )
        return self._record(owner, f'{{"task":{{"id":{number},"task":{task}}}}}')

    def _work(self):
        """A turn of six acts, of one member after the other."""
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
            f'{{"said":{{"text":"All {turn} tests of the rows pass; I go on with the next."}}}}',
            f'{{"used":{{"input":{self.tokens[name]},"output":{self.tokens[name] // 10}}}}}',
            '{"turn_ended":{"end":"done"}}',
        )[step]
        return f"work/{name}", self._record(name, f'{{"worked":{{"name":"{name}","act":{act}}}}}')


def stamp(at):
    second, milli = divmod(at, 1000)
    return f"{seconds(second)}.{milli:03}Z"


_latest = (None, None)


def seconds(second):
    """A second in words; most records share one with the record before."""
    global _latest
    if _latest[0] != second:
        _latest = (second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
    return _latest[1]


def write_replay(path, count):
    """A file as `brigade log --json` writes it, with so many records."""
    journal = Journal()
    with path.open("w") as file:
        file.writelines(journal.beginning())
        file.writelines(line for _, line in journal.more(count - journal.records))
    return journal


def write_team(folder, count, step):
    """The journals of a team in brigade's own folder, with so many records; they end about now."""
    now = int(datetime.now(UTC).timestamp() * 1000)
    journal = Journal(now - (count + 20) * step, step)
    # The team is older than all that happened in it.
    made = folder / "team.jsonl"
    born = [json.loads(line) | {"at": stamp(journal.first)} for line in made.read_text().split("\n") if line]
    made.write_text("".join(json.dumps(record) + "\n" for record in born))
    lines = {"team": journal.joining()}
    for name, line in journal.more(count - journal.records):
        lines.setdefault(name, []).append(line)
    for name, those in lines.items():
        path = folder / f"{name}.jsonl"
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with path.open("a") as file:
            file.writelines(those)
    return journal
