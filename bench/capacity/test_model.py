"""Tests of the model's arithmetic, with round constants whose results can be computed by hand."""

import io
import json
import unittest
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace

import capacity
import check
from model import CapacityError, Model, ServerContent, Workload

CONSTANTS = {
    "empty_server_disk_bytes": 1_000_000,
    "empty_server_memory_bytes": 20_000_000,
    "fill_bytes_per_message": 800,
    "memory_bytes_per_subject": 400,
    "memory_bytes_per_recent_message": 0,
    "memory_bytes_for_reading": 0,
    "memory_bytes_per_buffered_byte": 0,
    "disk_bytes_per_stream": 0,
    "memory_bytes_per_further_message": 100,
    "memory_bytes_per_stream": 100_000,
    "memory_bytes_per_connection": 50_000,
    "memory_bytes_per_read_block": 5_000_000,
    "block_bytes": 4_000_000,
    "start_seconds_empty_server": 0.05,
    "start_seconds_per_message": 0.000_005,
    "start_seconds_per_recent_message": 0,
    "writes_per_message": 10,
    "kept_writes_per_message": 6,
    "writes_per_tool_call": 2,
    "pulse_writes_per_member_second": 0.1,
    "stored_bytes_per_message": 3_000,
    "stored_bytes_per_tool_call": 500,
    "core_seconds_per_write_1_replicas": 0.000_1,
    "core_seconds_per_write_3_replicas": 0.000_3,
    "core_seconds_per_first_read": 0.01,
    "idle_cores_per_stream": 0.000_5,
    "written_bytes_per_write": 10_000,
    "writes_per_second_of_one_shard": 10_000,
    "streams_of_one_cluster": 1_000,
    "connections_of_one_server": 65_536,
}
ASSUMPTIONS = {
    "peak_factor": 4,
    "running_share": 0.5,
    "tool_calls_per_message": 5,
    "task_changes_per_message": 0,
    "starts_per_member_day": 2,
    "subjects_per_member": 10,
    "largest_organisation": 10,
    "utilisation": 0.5,
    "utilisation_disk": 0.8,
    "utilisation_memory": 0.5,
    "restart_seconds_limit": 600,
}
MACHINE = {"cores": 16, "memory_gb": 64, "disk_gb": 2_000, "disk_write_mb_per_second": 500}
# 86,400 messages a day are one message per second.
LOAD = Workload(
    organisations=1, teams=10, members=100, messages_per_day=86_400, retention_days=10, hosts=10, replicas=3
)


class ModelTest(unittest.TestCase):
    def setUp(self):
        self.model = Model(CONSTANTS, ASSUMPTIONS, MACHINE)

    def test_a_server_filled_by_scale_has_13_messages_for_six_mailboxes(self):
        content = self.model.fill(600)
        self.assertEqual(content.messages, 1_300)
        self.assertEqual(self.model.disk_bytes(content), 1_000_000 + 1_300 * 800)
        self.assertEqual(self.model.memory_after_start(content), 20_000_000 + 1_300 * 400)
        self.assertAlmostEqual(self.model.restart_seconds(content), 0.05 + 1_300 * 0.000_005)

    def test_part_of_a_team_counts_as_a_team(self):
        self.assertEqual(self.model.fill(7).messages, 26)

    def test_the_server_remembers_the_ids_of_recent_messages(self):
        recent = {"memory_bytes_per_recent_message": 200, "start_seconds_per_recent_message": 0.001}
        model = Model(CONSTANTS | recent, ASSUMPTIONS, MACHINE)
        half, none = model.fill(600, recent_share=0.5), model.fill(600, recent_share=0)
        self.assertEqual(model.memory_after_start(half) - model.memory_after_start(none), 650 * 200)
        self.assertAlmostEqual(model.restart_seconds(half) - model.restart_seconds(none), 0.65)
        # 85 writes per second at the peak.
        self.assertEqual(model.content(LOAD).recent, 85 * 120)

    def test_further_messages_count_in_memory_only_while_the_server_holds_their_blocks(self):
        # 120 s at 5 us for each message are 24 million messages.
        few = ServerContent(1_000_000, 0, 4_000_000, stream_subjects=1_000_000)
        many = ServerContent(100_000_000, 0, 4_000_000, stream_subjects=1_000_000)
        self.assertEqual(self.model.memory_after_start(few), 20_000_000 + 100_000_000)
        self.assertAlmostEqual(self.model.memory_after_start(many) / 1e6, 20 + 24 * 100 / 100)

    def test_a_subject_counts_once_in_each_block(self):
        # Ten blocks with 100 messages each, on ten subjects.
        content = ServerContent(1_000, 0, 40_000_000, stream_subjects=10)
        self.assertEqual(self.model.memory_after_start(content), 20_000_000 + 10 * 10 * 100)

    def test_reads_load_each_block_at_most_once(self):
        content = ServerContent(0, 0, 8_000_000, stream_subjects=0)
        one, all_blocks = self.model.memory_after_reads(content, 1), self.model.memory_after_reads(content, 10_000)
        self.assertAlmostEqual(one, 20_000_000 + 5_000_000)
        self.assertAlmostEqual(all_blocks, 20_000_000 + 2 * 5_000_000)

    def test_the_buffer_for_reading_holds_at_most_one_block(self):
        model = Model(CONSTANTS | {"memory_bytes_per_buffered_byte": 2}, ASSUMPTIONS, MACHINE)
        sizes = [model.block_buffer(ServerContent(0, 0, size, 0)) for size in (1_000_000, 4_000_000, 9_000_000)]
        self.assertEqual(sizes, [2_000_000, 8_000_000, 8_000_000])

    def test_streams_in_parallel_share_the_start(self):
        content = ServerContent(1_000_000, 0, 0, stream_subjects=0)
        self.assertAlmostEqual(self.model.restart_seconds(content, 4), 0.05 + 5 / 4)

    def test_writes_are_those_of_messages_tool_calls_and_pulses(self):
        rates = self.model.rates(LOAD)
        self.assertEqual(rates["peak_messages_per_second"], 4)
        self.assertEqual(rates["writes_per_message"], 20)
        self.assertEqual(rates["pulse_writes_per_second"], 5)
        self.assertEqual(rates["peak_writes_per_second"], 4 * 20 + 5)
        self.assertEqual(rates["average_writes_per_second"], 20 + 5)
        self.assertEqual(rates["connections"], 60)

    def test_disk_grows_with_the_retention(self):
        content = self.model.content(LOAD)
        self.assertEqual(content.bytes, 864_000 * (3_000 + 5 * 500))
        self.assertEqual(content.messages, 864_000 * (6 + 5 * 2))
        longer = self.model.content(replace(LOAD, retention_days=20))
        self.assertEqual(longer.bytes, 2 * content.bytes)

    def test_a_small_workload_needs_one_cluster_and_one_shard(self):
        plan = self.model.plan(LOAD)
        self.assertEqual((plan.clusters, plan.servers), (1, 3))
        self.assertEqual(plan.shards["average_organisation"], 1)
        self.assertEqual(self.model.plan(replace(LOAD, replicas=1)).servers, 1)

    def test_an_organisation_with_many_writes_gets_more_shards(self):
        # 6,000 writes per second at the peak are more than half of what one shard can do.
        load = replace(LOAD, messages_per_day=86_400 * 75, retention_days=0.1)
        self.assertEqual(self.model.shards(load, 1), 4)

    def test_an_organisation_with_a_long_start_gets_more_shards(self):
        # 16 messages of 5 us for each of 8.64 million: one shard would need 691 s for its start.
        load = replace(LOAD, retention_days=100)
        self.assertEqual(self.model.shards(load, 1), 4)

    def test_an_organisation_that_fits_in_no_number_of_shards_is_refused(self):
        with self.assertRaisesRegex(CapacityError, "does not fit into 16 shards"):
            self.model.plan(replace(LOAD, messages_per_day=86_400 * 1_000))

    def test_many_organisations_exhaust_the_streams_first(self):
        plan = self.model.plan(replace(LOAD, organisations=1_000, teams=1_000, members=1_000))
        self.assertEqual(plan.first_exhausted, "streams")
        self.assertEqual(plan.clusters, 5)

    def test_memory_that_every_cluster_needs_is_not_divided(self):
        # Five million connections of 50 kB on three servers are 83 GB for each, and a server may use 32 GB.
        load = replace(LOAD, organisations=100, teams=100, members=10_000_000, messages_per_day=1)
        memory = next(one for one in self.model.plan(load).resources if one.name == "memory")
        self.assertEqual(memory.clusters, 3)
        small = Model(CONSTANTS, ASSUMPTIONS, MACHINE | {"memory_gb": 0.01})
        with self.assertRaisesRegex(CapacityError, "too little memory"):
            small.plan(LOAD)

    def test_one_mail_stream_starts_with_one_core(self):
        # 16 kept writes of 5 us for each of 864,000 messages.
        plan = self.model.plan(LOAD)
        restart = next(one for one in plan.resources if one.name == "restart after a kill")
        self.assertAlmostEqual(restart.needed, 864_000 * 16 * 0.000_005)
        self.assertEqual(restart.per_cluster, 600)
        self.assertAlmostEqual(plan.per_server["restart_after_kill_seconds"], 0.05 + restart.needed)

    def test_shards_divide_the_subjects_of_a_stream(self):
        # Four shards: each has a quarter of the 1,000 subjects, and a block of 4 MB has more messages than that.
        load = replace(LOAD, retention_days=100)
        content = self.model.content(load)
        per_block = content.messages / self.model.blocks(content)
        listed = min(content.messages - content.subjects, 4 * 120 / 0.000_005) * 250 / per_block
        start = 20_000_000 + 1_000 * 400 + listed * 100
        other = 20 * 100_000 + 60 / 3 * 50_000 + 100 * 2 / 86_400 * 4 * 120 * 5_000_000
        self.assertAlmostEqual(self.model.plan(load).per_server["memory_gb"], (start + other) / 1e9)

    def test_resources_are_sorted_by_the_clusters_that_they_need(self):
        needed = [one.clusters for one in self.model.plan(LOAD).resources]
        self.assertEqual(needed, sorted(needed, reverse=True))

    def test_a_million_messages_cost_their_writes_and_their_disk(self):
        cost = self.model.plan(LOAD).per_million_messages
        self.assertAlmostEqual(cost["core_seconds_of_the_messages"], 20 * 0.000_3 * 1e6)
        # 5 pulses of 0.3 ms and 5 streams of 0.5 ms in each second, for a million seconds.
        self.assertAlmostEqual(cost["core_seconds_of_pulses_and_idle_streams"], (0.001_5 + 0.002_5) * 1e6)
        self.assertAlmostEqual(cost["disk_gb_months"], 5.5 * 10 / 30 * 3)

    def test_impossible_workloads_are_refused(self):
        for change in ({"replicas": 2}, {"teams": 0}, {"members": 5}, {"organisations": 11}, {"retention_days": -1}):
            with self.subTest(change), self.assertRaises(CapacityError):
                self.model.plan(replace(LOAD, **change))


class CommandTest(unittest.TestCase):
    def run_command(self, *arguments):
        output = io.StringIO()
        with redirect_stdout(output):
            capacity.main(arguments)
        return output.getvalue()

    def test_every_constant_has_a_unit_and_a_source(self):
        groups = json.loads((capacity.HERE / "constants.json").read_text())
        for group, entries in groups.items():
            for name, entry in entries.items():
                with self.subTest(f"{group}: {name}"):
                    self.assertEqual(set(entry), {"value", "unit", "command" if group == "constants" else "why"})
        self.assertEqual(set(groups["constants"]), set(CONSTANTS))
        self.assertEqual(set(groups["assumptions"]), set(ASSUMPTIONS))
        self.assertEqual(set(groups["machine"]), set(MACHINE))

    def test_every_plan_prints_text_and_json(self):
        for plan in capacity.PLANS:
            with self.subTest(plan):
                self.assertIn("exhausted first", self.run_command("--plan", plan))
                answer = json.loads(self.run_command("--plan", plan, "--json"))
                self.assertEqual(answer["first_exhausted"], answer["resources"][0]["name"])

    def test_money_is_printed_only_with_a_price_table(self):
        prices = str(capacity.HERE / "prices.example.json")
        self.assertNotIn("ASSUMED prices", self.run_command())
        self.assertIn("ASSUMED prices", self.run_command("--prices", prices))
        answer = json.loads(self.run_command("--json", "--prices", prices))
        self.assertGreater(answer["money_assumed"]["per_million_messages"], 0)

    def test_impossible_assumptions_are_refused(self):
        cases = {"speed=2": "peak_factor", "cores=0": "greater than 0", "cores=many": "not a number", "cores": "NAME=VALUE"}
        for change, why in cases.items():
            with self.subTest(change), redirect_stderr(io.StringIO()) as errors, self.assertRaises(SystemExit):
                capacity.main(["--assume", change])
            self.assertIn(why, errors.getvalue())

    def test_an_assumption_changes_the_plan(self):
        before = json.loads(self.run_command("--json"))
        after = json.loads(self.run_command("--json", "--assume", "peak_factor=8"))
        self.assertEqual(after["rates"]["peak_messages_per_second"], 2 * before["rates"]["peak_messages_per_second"])

    def test_the_check_accepts_twenty_per_cent(self):
        model = Model(CONSTANTS, ASSUMPTIONS, MACHINE)
        content = model.fill(600_000)
        found = {
            "mailboxes": 600_000,
            "fill_seconds": 1,
            "first_start_seconds": 0.1,
            "disk_bytes": model.disk_bytes(content) / 1.19,
            "memory_after_start_bytes": [model.memory_after_start(content) / 1.21] * 2,
            "memory_after_reads_bytes": model.memory_after_reads(content, 10),
            "reads": 10,
            "restart_seconds": [9, 8],
            "restart_processor_seconds": [9, model.restart_seconds(content) / 1.3],
        }
        with redirect_stdout(io.StringIO()) as output:
            self.assertEqual(check.check(model, found, slack=1), 2)
            self.assertEqual(check.check(model, found, slack=2), 1)
        self.assertIn("PASS  600,000 mailboxes, disk: ", output.getvalue())
        self.assertIn("FAIL  600,000 mailboxes, memory after a start: ", output.getvalue())

    def test_the_check_ignores_milliseconds(self):
        model = Model(CONSTANTS, ASSUMPTIONS, MACHINE)
        found = {
            "mailboxes": 6,
            "fill_seconds": 0,
            "first_start_seconds": 0,
            "disk_bytes": model.disk_bytes(model.fill(6)),
            "memory_after_start_bytes": [model.memory_after_start(model.fill(6))],
            "memory_after_reads_bytes": model.memory_after_reads(model.fill(6), 1),
            "reads": 1,
            "restart_seconds": [0.1],
            "restart_processor_seconds": [0.035],
        }
        with redirect_stdout(io.StringIO()) as output:
            self.assertEqual(check.check(model, found, slack=1), 0)
        self.assertIn("MISSED, but by less than 0.02 s", output.getvalue())

    def test_the_check_knows_which_messages_are_recent(self):
        # The server was filled in 240 s. When the start ended 60 s later, the last 60 s of the filling were recent.
        self.assertEqual(check.recent_share(240, 60), 0.25)
        self.assertEqual(check.recent_share(10, 60), 1)
        self.assertEqual(check.recent_share(10, 115), 0.5)
        self.assertEqual(check.recent_share(10, 130), 0)

    def test_the_check_reads_what_scale_prints(self):
        text = "650 messages of new teams in 54.2 s (12 per second)\n300 mailboxes: ready 6.5 s after a kill\n"
        found = check.parse(text + 'footprint: {"mailboxes": 300}\n')
        self.assertEqual(found, [{"mailboxes": 300, "fill_seconds": 54.2, "first_start_seconds": 6.5}])


if __name__ == "__main__":
    unittest.main()
