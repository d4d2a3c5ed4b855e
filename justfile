# Recipes for everyday work. A change must pass `just ci`.

# List the recipes.
default:
    @just --list

# Check format, lints, tests, documentation and dependencies; needs no root.
check:
    .ci/check

# Run everything that a change must pass: the checks, and each kind of benchmark and end-to-end test. Needs root.
ci:
    .ci/run

# Run the long tests: all benchmarks, all agents, and a soak of two hours. Needs root and an idle machine.
nightly: model (bend "2000000") (store "all") (nats "all")
    cargo bench -q -p brigade-wire --bench splice
    cargo build --release -p brigade -p scripted-model
    bench/team/run
    bench/team/endure
    bench/attach/run
    bench/capacity/run --check
    for name in policy shell kills claude agents guest ends native host hosts steer attach teammates ui screens readme cookbook install; do e2e/$name/run || exit 1; done
    e2e/soak/run
    cargo build --release -p brigade -p brigade-bench-store -p brigade-bench-nats
    bench/table/run

# Read every recorded Claude Code file, write it again, and print whether the bytes are the same.
fixtures:
    cargo test -q -p brigade-wire --test it -- --nocapture fixtures::

# Measure the cost of appending to a big inbox, compared with a memcpy of the same bytes.
splice:
    cargo bench -q -p brigade-wire --bench splice

# Check the invariants of brigade-wire on mutated fixtures, without a fuzzer: CASES mutations for each invariant.
bend cases="2000000":
    BRIGADE_CASES={{cases}} cargo test -q --release -p brigade-wire --test it -- --nocapture random::

# Check a model of the mailbox protocol in every order of system calls, kills and pauses: tens of millions of states.
model:
    cargo test --release -p brigade-files --test model -- --ignored --nocapture

# Benchmark the file store: cost, contention, kill, locks, claims, wake, process, tools, tools-kill, faults,
# power, in-process, event-log, flood, history, or all; --short for fewer rounds. Some need root; see bench/store/README.md.
store name="all" *flags:
    cargo build --release -p brigade -p brigade-bench-store
    target/release/brigade-bench-store {{name}} {{flags}}

# Compare the cost of a team of 2 members with the cost of a large team; see bench/team/README.md.
team *arguments:
    cargo build --release -p brigade
    bench/team/run {{arguments}}

# Keep a team of 100 members at work for half an hour while processes are killed; see bench/team/README.md.
endure *arguments:
    cargo build --release -p brigade
    bench/team/endure {{arguments}}

# Print one table of what brigade costs, with all bars; see bench/table/README.md.
table *arguments:
    cargo build --release -p brigade -p brigade-bench-store -p brigade-bench-nats
    bench/table/run {{arguments}}

# Benchmark the NATS store: bench, faults, shards, scale, costs, size, or all. Needs the path of nats-server in
# BRIGADE_NATS_SERVER; some need root; see bench/nats/README.md.
nats name="all" *flags:
    cargo build --release -p brigade --no-default-features
    cp target/release/brigade target/release/brigade-without-nats
    cargo build --release -p brigade -p brigade-bench-nats
    target/release/brigade-bench-nats {{name}} {{flags}}

# Compute what a NATS store needs for a workload, for example `just capacity --plan internet`; --check compares the
# predictions with measurements; see bench/capacity/README.md.
capacity *arguments:
    bench/capacity/run {{arguments}}

# Test brigade next to the real Claude Code 2.1.50 and 2.1.325, on the same files; see e2e/claude/README.md.
claude *arguments:
    cargo build --release -p brigade
    e2e/claude/run {{arguments}}

# Test `brigade mcp` with the MCP Inspector; see e2e/mcp/README.md.
inspector:
    cargo build --release -p brigade
    e2e/mcp/run

# Test real agents of four vendors as members of one team; see e2e/agents/README.md.
agents *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/agents/run {{arguments}}

# Test a single teammate with the real Codex and Gemini CLI: kills, load, latency; see e2e/teammates/README.md.
teammates *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/teammates/run {{arguments}}

# Test whole teams from a brigade.toml, with real agents of three vendors; see e2e/host/README.md.
host *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/host/run {{arguments}}

# Test one team on three hosts, one of which is disconnected; see e2e/hosts/README.md.
hosts *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/hosts/run {{arguments}}

# Run the soak test: two hours of work, kills and disconnections; see e2e/soak/README.md.
soak *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/soak/run {{arguments}}

# Test `brigade ui` in real terminals; see e2e/ui/README.md.
ui *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/ui/run {{arguments}}

# Make the screenshots in docs/pictures: the dashboard from fixtures/ui/demo.jsonl, the commands from a scripted team.
pictures:
    cargo build --release -p brigade -p scripted-model
    e2e/ui/picture
    e2e/screens/run pictures

# Capture every screen with 80 and 200 columns, dark and light, in target/screens; see e2e/screens/README.md.
screens:
    cargo build --release -p brigade -p scripted-model
    e2e/screens/run

# Regenerate the pages and tables of the guide that are generated from the program.
docs:
    BRIGADE_DOCS=write cargo test -q -p brigade --bin brigade docs_sync::

# Build the guide as a book in target/book; needs mdbook 0.5.
book:
    mdbook build docs

# Run the examples of the guide; see e2e/docs/README.md.
examples *pages:
    cargo build --release -p brigade
    e2e/docs/run {{pages}}

# Compare brigade with similar programs and write the tables of docs/benchmarks.md; see bench/peers/README.md.
bench-peers *arguments:
    cargo build --release -p brigade
    bench/peers/run {{arguments}}

# Compare the public API of the library crates with the checked-in lists; --write updates them.
api *flags:
    e2e/api/run {{flags}}

# Check the public API changes since git revision REV with cargo-semver-checks.
semver rev:
    cargo semver-checks -p brigade-wire -p brigade-core -p brigade-nats --baseline-rev {{rev}}

# Run the library's example with the real Codex and Gemini CLI; see e2e/library/README.md.
library *arguments:
    cargo build --release -p brigade -p scripted-model
    cargo build -p brigade --example review
    e2e/library/run {{arguments}}

# Test the real Claude Code 2.1.50 and 2.1.325 as a native member; see e2e/native/README.md.
native *arguments:
    cargo build --release -p brigade
    e2e/native/run {{arguments}}

# End and resume the real Claude Code 2.1.50, 2.1.240 and 2.1.325 in every way; see e2e/ends/README.md.
ends *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/ends/run {{arguments}}

# Test the real Claude Code 2.1.50 and 2.1.325 as the lead of other vendors' agents; see e2e/guest/README.md.
guest *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/guest/run {{arguments}}

# Test lines that permission rules allow in real shells, under strace; see e2e/policy/README.md.
policy *arguments:
    e2e/policy/run {{arguments}}

# Complete command lines in bash, zsh and fish; see e2e/shell/README.md.
shell *arguments:
    cargo build --release -p brigade
    e2e/shell/run {{arguments}}

# Kill commands, the supervisor and members at each system call; see e2e/kills/README.md.
kills *arguments:
    cargo build --release -p brigade
    e2e/kills/run {{arguments}}

# Run the recipes of docs/cookbook.md with the real Codex and Gemini CLI; see e2e/cookbook/README.md.
cookbook *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/cookbook/run {{arguments}}

# Run every fuzz target for SECONDS each; needs a nightly compiler and cargo-fuzz.
fuzz seconds="120":
    #!/usr/bin/env bash
    set -euo pipefail
    for crate in wire core; do
        cd "{{justfile_directory()}}/crates/brigade-$crate"
        for target in $(cargo +nightly fuzz list); do
            mkdir -p "fuzz/corpus/$target"
            # No sanitizer is needed, because the crates have no unsafe code.
            cargo +nightly fuzz run --sanitizer none "$target" "fuzz/corpus/$target" ../../fixtures -- \
                -dict="$(echo fuzz/*.dict)" -max_len=8192 -max_total_time={{seconds}} -print_final_stats=1 \
                2>&1 | tee "fuzz/corpus/$target.log" | grep -E 'panicked|SUMMARY|number_of_executed_units'
        done
    done
    cd "{{justfile_directory()}}"
    awk '/number_of_executed_units/ { sum += $2 } END { print "total executions: " sum }' \
        crates/*/fuzz/corpus/*.log

# Build every package for this machine's platform in target/dist; see docs/install.md.
dist:
    packaging/dist

# Build and install every package; see e2e/install/README.md.
install *arguments:
    packaging/build
    e2e/install/run {{arguments}}

# Run the commands of README.md in an empty home folder; see e2e/readme/README.md.
readme *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/readme/run {{arguments}}
