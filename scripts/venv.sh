# Sourced by the scripts beside it: makes .venv and fills it, once for every pyproject.toml.
#
# PYTHON chooses the interpreter that makes the environment (default: python3).
# pip's own configuration decides where packages come from.

cd "$(dirname -- "$0")/${ROOT_FROM_HERE:-..}"
VENV=.venv

# The environment holds what pyproject.toml and the constraints say, for `core` or for `dev`.
ensure_venv() {
    is_filled "$1" || (
        # Two of these scripts at once fill it once. Without flock they take their chances.
        ! command -v flock >/dev/null || flock 9
        is_filled "$1" || fill "$1"
    ) 9<scripts
}

is_filled() {
    [ "$(cat "$VENV/.rekindle-$(kind "$1")" 2>/dev/null)" = "$(fingerprint)" ] &&
        "$VENV/bin/python" -c '' 2>/dev/null
}

# Once a developer's environment, always one: the core is part of it.
kind() {
    if [ -e "$VENV/.rekindle-dev" ]; then echo dev; else echo "$1"; fi
}

# An editable install points at this folder, so one that was moved or copied is filled anew.
fingerprint() {
    echo "$(cat pyproject.toml scripts/constraints.txt | cksum) $PWD"
}

fill() {
    kind=$(kind "$1")
    make_venv
    case $kind in
        dev) target='.[dev]' ;;
        *) target='.' ;;
    esac
    echo "setup: installing $target into $VENV" >&2
    "$VENV/bin/python" -m pip install --quiet --editable "$target" --constraint scripts/constraints.txt
    fingerprint >"$VENV/.rekindle-$kind"
}

make_venv() {
    ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1 || return 0
    python=${PYTHON:-python3}
    if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        echo "setup: Rekindle needs Python 3.11 or newer; set PYTHON to one ($python is not)" >&2
        exit 1
    fi
    echo "setup: making $VENV with $python" >&2
    "$python" -m venv --clear "$VENV"
}
