"""The arithmetic of the capacity model of the NATS store. It has no I/O: constants and workload go in, a plan comes out."""

from dataclasses import asdict, dataclass, field, replace
from math import ceil

DAY_SECONDS = 86_400
MONTH_DAYS = 30
# Every shard has these streams: mail, board, team, notes, pulses.
STREAMS_PER_SHARD = 5
# The numbers of shards that `brigade org init` accepts.
SHARDS = (1, 4, 16)
# How long the server holds the list of subjects of a block that it has read.
BLOCK_HELD_SECONDS = 120
# How long the server remembers the id of a message: DEDUP in crates/brigade-nats/src/layout.rs.
ID_SECONDS = 120
MOST_CLUSTERS = 10_000


class CapacityError(Exception):
    """The workload is impossible, or no plan was found for it."""


@dataclass(frozen=True)
class Workload:
    """The work of the organisations."""

    organisations: int
    teams: int
    members: int
    messages_per_day: float
    retention_days: float
    hosts: int
    replicas: int

    def check(self):
        for name, value in asdict(self).items():
            if value <= 0:
                raise CapacityError(f"{name} must be greater than 0")
        if self.replicas not in (1, 3):
            raise CapacityError("replicas must be 1 or 3: other numbers were not measured")
        if self.teams < self.organisations:
            raise CapacityError("there must be at least as many teams as organisations")
        if self.members < self.teams:
            raise CapacityError("there must be at least as many members as teams")


@dataclass(frozen=True)
class ServerContent:
    """The content of one server: messages on different subjects, in streams with `stream_subjects` each. `recent` messages are
    younger than two minutes, so that the server remembers their ids."""

    messages: float
    subjects: float
    bytes: float
    stream_subjects: float
    recent: float = 0

    def divided(self, parts):
        """Returns the content of one of several servers between which the streams are divided."""
        each = [value / parts for value in (self.messages, self.subjects, self.bytes)]
        return ServerContent(*each, self.stream_subjects, self.recent / parts)


@dataclass
class Resource:
    """A resource, how much of it the workload needs in total, and how much one cluster has."""

    name: str
    unit: str
    needed: float
    per_cluster: float
    clusters: float = 0

    def __post_init__(self):
        self.clusters = self.clusters or self.needed / self.per_cluster


@dataclass
class Plan:
    """The result of the model."""

    workload: Workload
    rates: dict
    shards: dict
    resources: list = field(default_factory=list)
    clusters: int = 1
    servers: int = 1
    per_server: dict = field(default_factory=dict)
    per_million_messages: dict = field(default_factory=dict)
    warnings: list = field(default_factory=list)

    @property
    def first_exhausted(self):
        return self.resources[0].name


class Model:
    """The constants, the assumptions and the machine, with the formulas that use them."""

    def __init__(self, constants, assumptions, machine):
        self.c, self.a, self.machine = constants, assumptions, machine

    # One server with a given content. `check.py` compares these predictions with measurements.

    def fill(self, mailboxes, recent_share=1):
        """The content that `brigade-bench-nats scale` creates: every team has six mailboxes with a message and a read mark
        each, and a roster, all on subjects of their own. `recent_share` of the messages are younger than two minutes."""
        teams = ceil(mailboxes / 6)
        messages = 13 * teams
        size = messages * self.c["fill_bytes_per_message"]
        return ServerContent(messages, messages, size, stream_subjects=12 * teams, recent=recent_share * messages)

    def disk_bytes(self, content):
        return self.c["empty_server_disk_bytes"] + content.bytes

    def blocks(self, content):
        return max(1, ceil(content.bytes / self.c["block_bytes"]))

    def memory_after_start(self, content, parallel=1):
        """The memory after a start in which the server reads `parallel` streams at a time. The server holds the list of
        subjects of each block for a while; a subject counts once in each block."""
        further = content.messages - content.subjects
        read = parallel * BLOCK_HELD_SECONDS / self.c["start_seconds_per_message"]
        per_block = max(1, content.messages / self.blocks(content))
        listed = min(further, read) * min(1, content.stream_subjects / per_block)
        return (
            self.c["empty_server_memory_bytes"]
            + self.block_buffer(content)
            + content.subjects * self.c["memory_bytes_per_subject"]
            + content.recent * self.c["memory_bytes_per_recent_message"]
            + listed * self.c["memory_bytes_per_further_message"]
        )

    def memory_after_reads(self, content, reads):
        """The memory after the first reads of `reads` mailboxes, at random places of the stream."""
        blocks = content.bytes / self.c["block_bytes"]
        loaded = blocks * (1 - (1 - 1 / blocks) ** reads) if blocks > 1 else blocks
        grown = loaded * self.c["memory_bytes_per_read_block"] + self.c["memory_bytes_for_reading"]
        return self.memory_after_start(content) + self.block_buffer(content) + grown

    def block_buffer(self, content):
        """The memory in which the server reads one block."""
        return self.c["memory_bytes_per_buffered_byte"] * min(content.bytes, self.c["block_bytes"])

    def start_work(self, content):
        """The core-seconds in which the server reads every message after a kill, and the recent messages once more."""
        old, recent = self.c["start_seconds_per_message"], self.c["start_seconds_per_recent_message"]
        return content.messages * old + content.recent * recent

    def restart_seconds(self, content, parallel=1):
        """The time of a start after a kill. The server reads streams in parallel, each with one core."""
        return self.c["start_seconds_empty_server"] + self.start_work(content) / parallel

    # The workload.

    def rates(self, load):
        a, c = self.a, self.c
        average = load.messages_per_day / DAY_SECONDS
        peak = average * a["peak_factor"]
        running = load.members * a["running_share"]
        writes_per_message = (
            c["writes_per_message"]
            + a["tool_calls_per_message"] * c["writes_per_tool_call"]
            + a["task_changes_per_message"]
        )
        pulses = running * c["pulse_writes_per_member_second"]
        return {
            "messages_per_second": average,
            "peak_messages_per_second": peak,
            "writes_per_message": writes_per_message,
            "running_members": running,
            "pulse_writes_per_second": pulses,
            "average_writes_per_second": average * writes_per_message + pulses,
            "peak_writes_per_second": peak * writes_per_message + pulses,
            "peak_first_reads_per_second": load.members * a["starts_per_member_day"] / DAY_SECONDS * a["peak_factor"],
            "connections": running + load.hosts,
        }

    def stored_bytes_per_message(self):
        a, c = self.a, self.c
        return c["stored_bytes_per_message"] + a["tool_calls_per_message"] * c["stored_bytes_per_tool_call"]

    def content(self, load):
        """Returns the content of one replica of all clusters together. The board and the rosters are not counted."""
        kept = load.messages_per_day * load.retention_days
        writes = kept * (
            self.c["kept_writes_per_message"] + self.a["tool_calls_per_message"] * self.c["writes_per_tool_call"]
        )
        subjects = min(writes, load.members * self.a["subjects_per_member"])
        in_stream = subjects / load.organisations
        recent = self.rates(load)["peak_writes_per_second"] * ID_SECONDS
        return ServerContent(writes, subjects, kept * self.stored_bytes_per_message(), in_stream, recent)

    def largest_share(self, load):
        """The part of the workload that the largest organisation has."""
        return min(1, self.a["largest_organisation"] / load.organisations)

    def shards(self, load, share):
        """The number of shards for an organisation that has `share` of the workload."""
        rates, content = self.rates(load), self.content(load)
        for shards in SHARDS:
            writes = rates["peak_writes_per_second"] * share / shards
            part = content.divided(shards / share)
            is_fast = writes <= self.c["writes_per_second_of_one_shard"] * self.a["utilisation"]
            if is_fast and self.restart_seconds(part) <= self.a["restart_seconds_limit"]:
                return shards
        raise CapacityError(
            "the largest organisation does not fit into 16 shards: shorten the retention, or split the organisation"
        )

    def processor_share(self, load, rates, streams):
        """The cores that all servers together use at the peak, before the utilisation limit."""
        c = self.c
        suffix = f"{load.replicas}_replicas"
        return (
            rates["peak_writes_per_second"] * c[f"core_seconds_per_write_{suffix}"]
            + rates["peak_first_reads_per_second"] * c["core_seconds_per_first_read"]
            + streams * c["idle_cores_per_stream"] * load.replicas / 3
        )

    def plan(self, load):
        load.check()
        rates, content = self.rates(load), self.content(load)
        average = self.shards(load, 1 / load.organisations)
        largest = self.shards(load, self.largest_share(load))
        streams = load.organisations * average * STREAMS_PER_SHARD
        content = replace(content, stream_subjects=content.stream_subjects / average)
        plan = Plan(load, rates, {"average_organisation": average, "largest_organisation": largest, "streams": streams})
        plan.resources = sorted(self.resources(load, rates, content, streams), key=lambda one: -one.clusters)
        plan.clusters = max(1, ceil(plan.resources[0].clusters))
        plan.servers = plan.clusters * load.replicas
        if plan.clusters > load.organisations:
            plan.warnings.append(
                "more clusters than organisations: an organisation is in one cluster, so larger servers are needed"
            )
        self.add_per_server(plan, content, streams)
        self.add_cost(plan)
        return plan

    def parallel_starts(self, streams):
        """How many mail streams a server with this number of streams reads at the same time after a kill."""
        return max(1, min(self.machine["cores"], streams / STREAMS_PER_SHARD))

    def disk_of_streams(self, content, streams):
        return self.disk_bytes(content) + streams * self.c["disk_bytes_per_stream"]

    def memory(self, rates, content, streams, load, clusters):
        """The memory that each server of `clusters` clusters needs at the peak."""
        c = self.c
        part = content.divided(clusters)
        held = rates["peak_first_reads_per_second"] / clusters * BLOCK_HELD_SECONDS
        held_blocks = min(held, self.blocks(part))
        return (
            self.memory_after_start(part, self.parallel_starts(streams / clusters))
            + streams / clusters * c["memory_bytes_per_stream"]
            + rates["connections"] / clusters / load.replicas * c["memory_bytes_per_connection"]
            + held_blocks * c["memory_bytes_per_read_block"]
        )

    def memory_resource(self, load, rates, content, streams):
        """Part of the memory is needed in every cluster, so the number of clusters is searched."""
        limit = self.machine["memory_gb"] * self.a["utilisation_memory"] * 1e9
        needed = self.memory(rates, content, streams, load, 1)
        clusters = needed / limit
        if clusters > 1:
            counts = range(2, MOST_CLUSTERS)
            fits = (count for count in counts if self.memory(rates, content, streams, load, count) <= limit)
            clusters = next(fits, None)
            if clusters is None:
                raise CapacityError("the servers have too little memory: raise memory_gb with --assume")
        return Resource("memory", "GB in one cluster", needed / 1e9, limit / 1e9, clusters)

    def resources(self, load, rates, content, streams):
        a, c, m = self.a, self.c, self.machine
        restart = self.start_work(content)
        written = rates["peak_writes_per_second"] * c["written_bytes_per_write"]
        return [
            Resource("streams", "streams", streams, c["streams_of_one_cluster"]),
            Resource(
                "processor",
                "cores at the peak",
                self.processor_share(load, rates, streams),
                m["cores"] * load.replicas * a["utilisation"],
            ),
            Resource("disk", "GB on each replica", self.disk_of_streams(content, streams) / 1e9, m["disk_gb"] * a["utilisation_disk"]),
            self.memory_resource(load, rates, content, streams),
            Resource(
                "restart after a kill",
                "core-seconds on each replica",
                restart,
                a["restart_seconds_limit"] * self.parallel_starts(streams),
            ),
            Resource("disk writes", "MB/s on each replica", written / 1e6, m["disk_write_mb_per_second"] * a["utilisation"]),
            Resource(
                "connections", "connections", rates["connections"], c["connections_of_one_server"] * load.replicas
            ),
        ]

    def add_per_server(self, plan, content, streams):
        load, rates, clusters = plan.workload, plan.rates, plan.clusters
        part = content.divided(clusters)
        plan.per_server = {
            "disk_gb": self.disk_of_streams(part, streams / clusters) / 1e9,
            "memory_gb": self.memory(rates, content, streams, load, clusters) / 1e9,
            "cores": self.processor_share(load, rates, streams) / plan.servers / self.a["utilisation"],
            "streams": streams / clusters,
            "connections": rates["connections"] / plan.servers,
            "restart_after_kill_seconds": self.restart_seconds(part, self.parallel_starts(streams / clusters)),
            "organisations_per_cluster": load.organisations / clusters,
        }

    def add_cost(self, plan):
        load, c, rates = plan.workload, self.c, plan.rates
        write = c[f"core_seconds_per_write_{load.replicas}_replicas"]
        streams = plan.shards["streams"] * c["idle_cores_per_stream"] * load.replicas / 3
        messages_per_second = rates["messages_per_second"]
        fixed = rates["pulse_writes_per_second"] * write + streams
        months = load.retention_days / MONTH_DAYS
        gigabytes = self.stored_bytes_per_message() * 1e6 / 1e9 * months
        plan.per_million_messages = {
            "core_seconds_of_the_messages": rates["writes_per_message"] * write * 1e6,
            "core_seconds_of_pulses_and_idle_streams": fixed / messages_per_second * 1e6,
            "disk_gb_months": gigabytes * load.replicas,
            "provisioned_core_hours": plan.servers * self.machine["cores"] / messages_per_second * 1e6 / 3_600,
            "provisioned_memory_gb_months": self.machine["memory_gb"] * self.month_share(plan),
            "provisioned_disk_gb_months": self.machine["disk_gb"] * self.month_share(plan),
        }

    @staticmethod
    def month_share(plan):
        """The months for which all servers work on a million messages."""
        return plan.servers * 1e6 / (plan.workload.messages_per_day * MONTH_DAYS)
