# Sourced by the scripts beside it: makes .venv and fills it, once for every pyproject.toml.
#
# PYTHON chooses the interpreter that makes the environment (default: python3).
# pip's own configuration decides where packages come from.

cd "$(dirname -- "$0")/${ROOT_FROM_HERE:-..}"
VENV=.venv

# The environment holds what pyproject.toml and the constraints say, for `core` or for `dev`.
ensure_venv() {
    wanted=$1
    # Once a developer's environment, always one: the core is part of it.
    [ ! -e "$VENV/.rekindle-dev" ] || wanted=dev
    have=$(cat "$VENV/.rekindle-$wanted" 2>/dev/null || true)
    need=$(cat pyproject.toml scripts/constraints.txt | cksum)
    # The links of an editable install point here: a folder that was moved or copied is filled anew.
    need="$need $PWD"
    if [ "$have" = "$need" ] && "$VENV/bin/python" -c '' 2>/dev/null; then
        return 0
    fi
    make_venv
    case $wanted in
        dev) target='.[dev]' ;;
        *) target='.' ;;
    esac
    echo "setup: installing $target into $VENV" >&2
    "$VENV/bin/python" -m pip install --quiet --editable "$target" --constraint scripts/constraints.txt
    echo "$need" >"$VENV/.rekindle-$wanted"
}

make_venv() {
    python=${PYTHON:-python3}
    if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        echo "setup: Rekindle needs Python 3.11 or newer; set PYTHON to one ($python is not)" >&2
        exit 1
    fi
    if ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
        echo "setup: making $VENV with $python" >&2
        "$python" -m venv --clear "$VENV"
    fi
}
