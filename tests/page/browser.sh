# The first lines of the scripts that look at a page of the trace tool; they are called with
# TRACE_TOOL TRACE...
set -euo pipefail
tool=$1
shift
here=$(dirname "$0")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)

# Loads the page $1 with these further options; its text is then in $scratch/dom. Fails if the
# console has something to say.
load() {
    timeout 300 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars \
        --user-data-dir="$scratch/profile" --enable-logging=stderr "${@:2}" \
        --dump-dom "file://$1" >"$scratch/dom" 2>"$scratch/log" ||
        echo "$1: the browser has not come to an end"
    if grep CONSOLE "$scratch/log"; then
        echo "$1: the console has something to say"
        exit 1
    fi
}

# Prints the text between the line that ends in $1 and the line END, with <, > and & as they are.
said() {
    sed -n "/$1\$/,/^END/p" "$scratch/dom" | sed '1d;$d' |
        sed 's/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g'
}
