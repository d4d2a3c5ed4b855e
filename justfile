# Everyday commands; `just ci` is what a change must pass.

fuzz_dir := "crates/brigade-wire/fuzz"

# List the commands.
default:
    @just --list

# Format, lints, tests, documentation and dependencies; needs no root.
check:
    .ci/check

# Everything a change must pass: the checks, and one real run of each kind of benchmark and end-to-end test. Needs root.
ci:
    .ci/run

# The long forms: every ratio, every vendor and generation, and the soak of two hours. Needs root and an idle machine.
nightly: model (bend "2000000") (store "all") (nats "all")
    cargo bench -q -p brigade-wire --bench splice
    cargo build --release -p brigade -p scripted-model
    for name in claude agents guest native host hosts teammates ui readme install; do e2e/$name/run || exit 1; done
    e2e/soak/run

# Read and write back every real file, and print what became of it.
fixtures:
    cargo test -q -p brigade-wire --test it -- --nocapture fixtures::

# The cost of appending to a big inbox, against a memcpy of the same bytes.
splice:
    cargo bench -q -p brigade-wire --bench splice

# The laws on bent copies of the real files, without a fuzzer: CASES for each of seven laws.
bend cases="2000000":
    BRIGADE_CASES={{cases}} cargo test -q --release -p brigade-wire --test it -- --nocapture random::

# Every order of the mailbox's system calls in a bigger world: tens of millions of states.
model:
    cargo test --release -p brigade-files --test model -- --ignored --nocapture

# Benchmarks of the file store: cost, contention, kill, locks, claims, wake, process, tools, tools-kill, faults,
# power, in-process, event-log, or all; --short for the short form. Some need root; bench/store/README.md.
store name="all" *flags:
    cargo build --release -p brigade -p brigade-bench-store
    target/release/brigade-bench-store {{name}} {{flags}}

# Benchmarks of the NATS store: bench, faults, scale, costs, size, or all. Needs nats-server in
# BRIGADE_NATS_SERVER, some need root; bench/nats/README.md.
nats name="all" *flags:
    cargo build --release -p brigade --no-default-features
    cp target/release/brigade target/release/brigade-without-nats
    cargo build --release -p brigade -p brigade-bench-nats
    target/release/brigade-bench-nats {{name}} {{flags}}

# brigade next to a real Claude Code, old and new; e2e/claude/README.md.
claude *arguments:
    cargo build --release -p brigade
    e2e/claude/run {{arguments}}

# The MCP Inspector and `brigade mcp`; e2e/mcp/README.md.
inspector:
    cargo build --release -p brigade
    e2e/mcp/run

# Real agents of four vendors as members of one team; e2e/agents/README.md.
agents *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/agents/run {{arguments}}

# One teammate with the real Codex and Gemini CLI: kills, load, latency; e2e/teammates/README.md.
teammates *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/teammates/run {{arguments}}

# Whole teams from a brigade.toml, with real agents of three vendors; e2e/host/README.md.
host *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/host/run {{arguments}}

# One team on three hosts, one of which is cut off; e2e/hosts/README.md.
hosts *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/hosts/run {{arguments}}

# Two hours of work, kills and network cuts; e2e/soak/README.md.
soak *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/soak/run {{arguments}}

# `brigade ui` in real terminals; e2e/ui/README.md.
ui *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/ui/run {{arguments}}

# Make the screenshots in docs/pictures from fixtures/ui/demo.jsonl.
pictures:
    cargo build --release -p brigade
    e2e/ui/picture

# The pages and tables of the guide that are made from the program, written anew.
docs:
    BRIGADE_DOCS=write cargo test -q -p brigade --bin brigade docs_sync::

# The guide as a book in target/book; needs mdbook 0.5.
book:
    mdbook build docs

# The examples of the guide; e2e/docs/README.md.
examples *pages:
    cargo build --release -p brigade
    e2e/docs/run {{pages}}

# brigade and similar programs with the same work; writes the tables of docs/benchmarks.md; bench/peers/README.md.
bench-peers *arguments:
    cargo build --release -p brigade
    bench/peers/run {{arguments}}

# Compare the public API of the library crates with the checked-in lists; --write updates them.
api *flags:
    e2e/api/run {{flags}}

# Check the API changes since REV with cargo-semver-checks.
semver rev:
    cargo semver-checks -p brigade-wire -p brigade-core -p brigade-nats --baseline-rev {{rev}}

# The library's example with the real Codex and Gemini CLI; e2e/library/README.md.
library *arguments:
    cargo build --release -p brigade -p scripted-model
    cargo build -p brigade --example review
    e2e/library/run {{arguments}}

# A real Claude Code, old and new, as a native member; e2e/native/README.md.
native *arguments:
    cargo build --release -p brigade
    e2e/native/run {{arguments}}

# A real Claude Code, old and new, leads agents of other vendors; e2e/guest/README.md.
guest *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/guest/run {{arguments}}

# Every fuzz target for SECONDS each; needs a nightly compiler and cargo-fuzz.
fuzz seconds="120":
    #!/usr/bin/env bash
    set -euo pipefail
    cd {{fuzz_dir}}/..
    for target in $(cargo +nightly fuzz list); do
        mkdir -p "fuzz/corpus/$target"
        # No sanitizer: there is no unsafe code for one to watch.
        cargo +nightly fuzz run --sanitizer none "$target" "fuzz/corpus/$target" ../../fixtures -- \
            -dict=fuzz/wire.dict -max_len=8192 -max_total_time={{seconds}} -print_final_stats=1 \
            2>&1 | tee "fuzz/corpus/$target.log" | grep -E 'panicked|SUMMARY|number_of_executed_units'
    done
    awk '/number_of_executed_units/ { sum += $2 } END { print "executions in all: " sum }' \
        fuzz/corpus/*.log

# Every package for this machine's target, in target/dist; docs/install.md.
dist:
    packaging/dist

# Build and install every package; e2e/install/README.md.
install *arguments:
    packaging/build
    e2e/install/run {{arguments}}

# The commands of README.md in an empty home; e2e/readme/README.md.
readme *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/readme/run {{arguments}}
