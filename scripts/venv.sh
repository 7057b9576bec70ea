# Sourced by the scripts beside it: creates .venv and installs the dependencies when they changed.
#
# PYTHON selects the interpreter for the environment (default: python3).
# pip's own configuration selects the package index.

cd "$(dirname -- "$0")/${ROOT_FROM_HERE:-..}"
VENV=.venv

# Make sure that .venv has the dependencies of pyproject.toml, `core` or `dev`, or what `build` needs.
ensure_venv() {
    is_filled "$1" || (
        # The lock keeps two scripts from installing at the same time; without flock they may collide.
        ! command -v flock >/dev/null || flock 9
        is_filled "$1" || fill "$1"
    ) 9<scripts
}

is_filled() {
    [ "$(cat "$VENV/.rekindle-$(kind "$1")" 2>/dev/null)" = "$(fingerprint)" ] &&
        "$VENV/bin/python" -c '' 2>/dev/null
}

# A dev environment stays one: it includes the others.
kind() {
    if [ -e "$VENV/.rekindle-dev" ]; then echo dev; else echo "$1"; fi
}

# An editable install refers to this folder, so a moved or copied environment is reinstalled.
fingerprint() {
    echo "$(cat pyproject.toml scripts/constraints.txt | cksum) $PWD"
}

fill() {
    kind=$(kind "$1")
    make_venv
    case $kind in
        dev) target='--editable .[dev]' ;;
        build) target='build hatchling' ;;
        *) target='--editable .' ;;
    esac
    echo "setup: installing ${target#--editable } into $VENV" >&2
    # shellcheck disable=SC2086
    "$VENV/bin/python" -m pip install --quiet $target --constraint scripts/constraints.txt
    fingerprint >"$VENV/.rekindle-$kind"
}

make_venv() {
    ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1 || return 0
    python=${PYTHON:-python3}
    if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        echo "setup: Rekindle needs Python 3.11 or newer, and $python is not; set PYTHON to a newer interpreter" >&2
        exit 1
    fi
    echo "setup: creating $VENV with $python" >&2
    "$python" -m venv --clear "$VENV"
}
