# Everyday commands; `.ci/run` is what a change must pass.

fuzz_dir := "crates/brigade-wire/fuzz"

# List the commands.
default:
    @just --list

# What CI checks, with the tools at hand.
check:
    .ci/run

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
    cargo test --release -p brigade-core --test model -- --ignored --nocapture

# What the store promises, measured: cost, contention, kill, locks, claims, wake, process, tools,
# tools-kill, faults, power, crowd, chronicle, or all. With --short in seconds, without it in minutes. Some need
# root; bench/store/README.md.
store name="all" *flags:
    cargo build --release -p brigade -p brigade-bench-store
    target/release/brigade-bench-store {{name}} {{flags}}

# What the store on the engine promises, measured: bench, faults, scale, costs, size, or all. Needs
# nats-server in BRIGADE_NATS_SERVER, some root; bench/nats/README.md.
nats name="all" *flags:
    cargo build --release -p brigade --no-default-features
    cp target/release/brigade target/release/brigade-without-nats
    cargo build --release -p brigade -p brigade-bench-nats
    target/release/brigade-bench-nats {{name}} {{flags}}

# brigade on one team with the real Claude Code, both generations; e2e/claude/README.md.
claude *arguments:
    cargo build --release -p brigade
    e2e/claude/run {{arguments}}

# Everything that can be asked of `brigade mcp`, asked by the MCP Inspector; e2e/mcp/README.md.
inspector:
    cargo build --release -p brigade
    e2e/mcp/run

# The real Codex, Gemini CLI, Claude Code and opencode as members of one team; e2e/agents/README.md.
agents *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/agents/run {{arguments}}

# What teammates promise, measured with the real Codex and Gemini CLI; e2e/teammates/README.md.
teammates *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/teammates/run {{arguments}}

# Whole teams from a brigade.toml, of the real programs of three vendors; e2e/host/README.md.
host *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/host/run {{arguments}}

# One team on three hosts, a native Claude Code and a Codex on each, one of them cut off;
# e2e/hosts/README.md.
hosts *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/hosts/run {{arguments}}

# Ten members at work for two hours, killed at every level, and two linked hosts, one of them cut off;
# e2e/soak/README.md.
soak *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/soak/run {{arguments}}

# `brigade ui` in real terminals: a walk with a real Codex, the terminal afterwards, load; e2e/ui/README.md.
ui *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/ui/run {{arguments}}

# The pictures of `brigade ui` in docs/pictures, made anew from fixtures/ui/demo.jsonl.
pictures:
    cargo build --release -p brigade
    e2e/ui/picture

# The pages and tables of the guide that are made from the program, written anew.
docs:
    BRIGADE_PAPERS=write cargo test -q -p brigade --bin brigade papers::

# The guide as a book in target/book; needs mdbook 0.5.
book:
    mdbook build docs

# The examples of the guide, run as they stand; e2e/docs/README.md.
examples *pages:
    cargo build --release -p brigade
    e2e/docs/run {{pages}}

# brigade and its peers on the same work, side by side: the tables of docs/benchmarks.md, made anew;
# bench/peers/README.md.
bench-peers *arguments:
    cargo build --release -p brigade
    bench/peers/run {{arguments}}

# The public surface of the library crates against the text that is kept of it; --write keeps it anew.
api *flags:
    e2e/api/run {{flags}}

# What has changed in that surface since REV, judged by cargo-semver-checks.
semver rev:
    cargo semver-checks -p brigade-wire -p brigade-core -p brigade-nats --baseline-rev {{rev}}

# The example of the library with the real Codex and Gemini CLI; e2e/library/README.md.
library *arguments:
    cargo build --release -p brigade -p scripted-model
    cargo build -p brigade --example review
    e2e/library/run {{arguments}}

# The real Claude Code, both generations, on a team that brigade leads; e2e/native/README.md.
native *arguments:
    cargo build --release -p brigade
    e2e/native/run {{arguments}}

# A real Claude Code, both generations, leads agents of other vendors; e2e/guest/README.md.
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

# Every package installed into an empty place, as a new user would; e2e/install/README.md.
install *arguments:
    packaging/build
    e2e/install/run {{arguments}}

# What README.md says, typed as it stands from an empty home; e2e/readme/README.md.
readme *arguments:
    cargo build --release -p brigade -p scripted-model
    e2e/readme/run {{arguments}}
