# What .ci/run and .ci/nightly share; sourced, not run.
set -euo pipefail
exec </dev/null
unset PYTHONPATH SYNAPSE_RETRIEVERS_STORE SYNAPSE_RETRIEVERS_DISABLED
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "Python 3.11 or newer is needed as python3" >&2
    exit 2
fi

# step NAME COMMAND...: runs it; the first failure ends everything.
step() {
    local name=$1 started=$SECONDS
    shift
    printf '\n=== %s\n' "$name"
    if ! "$@"; then
        printf '\nFAILED: %s\n' "$name"
        exit 1
    fi
    printf -- '--- %s: %s s\n' "$name" $((SECONDS - started))
}

# A fresh clone with what is not committed yet laid over it: a newcomer's start, whatever
# environments and caches stand in this work tree.
fresh_clone() {
    git clone --quiet "$root" "$1"
    git -C "$1" ls-files -z | (cd "$1" && xargs -0 rm -f)
    (
        cd "$root"
        git ls-files -z --cached --others --exclude-standard |
            while IFS= read -r -d '' file; do
                [ ! -e "$file" ] || printf '%s\0' "$file"
            done | tar -cf - --null -T -
    ) | tar -xf - -C "$1"
}

# readme_command N: the Nth command of the first sh block of README.md.
readme_command() {
    awk -v n="$1" '/^```sh$/ {on = 1; next} /^```/ && on {exit} on && NF && ++i == n' README.md
}
