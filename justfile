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
# tools-kill, faults, power, crowd, or all. With --short in seconds, without it in minutes. Some need root;
# proofs/store/README.md.
proof name="all" *flags:
    cargo build --release -p brigade -p brigade-proofs
    target/release/brigade-proofs {{name}} {{flags}}

# brigade on one team with the real Claude Code, both generations; proofs/claude/README.md.
claude *arguments:
    cargo build --release -p brigade
    proofs/claude/run {{arguments}}

# Everything that can be asked of `brigade mcp`, asked by the MCP Inspector; proofs/mcp/README.md.
inspector:
    cargo build --release -p brigade
    proofs/mcp/run

# The real Codex, Gemini CLI, Claude Code and opencode as members of one team; proofs/agents/README.md.
agents *arguments:
    cargo build --release -p brigade -p scripted-model
    proofs/agents/run {{arguments}}

# What teammates promise, measured with the real Codex and Gemini CLI; proofs/teammates/README.md.
teammates *arguments:
    cargo build --release -p brigade -p scripted-model
    proofs/teammates/run {{arguments}}

# Whole teams from a brigade.toml, of the real programs of three vendors; proofs/host/README.md.
host *arguments:
    cargo build --release -p brigade -p scripted-model
    proofs/host/run {{arguments}}

# The crate agent-teams 0.1.0 on the same work, side by side.
peers *flags:
    proofs/peers/run {{flags}}

# The real Claude Code, both generations, on a team that brigade leads; proofs/native/README.md.
native *arguments:
    cargo build --release -p brigade
    proofs/native/run {{arguments}}

# A real Claude Code, both generations, leads agents of other vendors; proofs/guest/README.md.
guest *arguments:
    cargo build --release -p brigade -p scripted-model
    proofs/guest/run {{arguments}}

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
