#!/usr/bin/env bash
# Looks at what a timeline says in detail, in headless Chromium: the scopes and the interrupted
# waits that it draws are those of the log; its tree of tasks and its answers to why are the tool's.
#
# tests/page/marks.sh TRACE_TOOL TRACE...
set -euo pipefail
tool=$1
shift
here=$(dirname "$0")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)

# What the page should say, from the log alone.
expected() {
    awk '
        /^#/ { next }
        { seq = $3; verb = $6 }
        verb == "trap" && $7 ~ /^(set_timeout|guard|shield|branch)$/ {
            for (n = 8; n <= NF && $n != "="; n++);
            scope = $(n + 1)
            opened[scope] = seq " " ($7 == "set_timeout" ? "timeout " $8 : $7 == "guard" ? "guard " $8 : $7)
            order[++scopes] = scope
            closed[scope] = "open"
        }
        verb == "trap" && $7 ~ /^un(set_timeout|guard|shield|branch)$/ { closed[$8] = seq }
        verb == "deliver" { interrupted++ }
        END {
            print "scopes drawn: " scopes + 0
            print "interrupted drawn: " interrupted + 0
            for (n = 1; n <= scopes; n++) print "scope " opened[order[n]] " " closed[order[n]]
        }' "$1"
    lines=$(grep -vc '^#' "$1")
    middle=$(awk -v "nth=$(((lines + 1) / 2))" '!/^#/ && ++n == nth { print $1 }' "$1")
    "$tool" tree --at "$middle" "$1"
    grep -m 20 -E '^ *[0-9.]+ +[0-9]+ +#[0-9]+ +[0-9]+ +[^ ]+ +run ' "$1" |
        sed 's/^[^#]*#\([0-9]*\) .*/\1/' | while read -r seq; do
        echo "why #$seq $("$tool" why "$seq" "$1" | head -n 1)"
    done
}

for trace in "$@"; do
    "$tool" timeline -o "$scratch/page.html" "$trace"
    { echo '<script>'; cat "$here/marks.js"; echo '</script>'; } >>"$scratch/page.html"
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --window-size=1280,800 \
        --user-data-dir="$scratch/profile" --enable-logging=stderr --virtual-time-budget=3000 \
        --dump-dom "file://$scratch/page.html" >"$scratch/dom" 2>"$scratch/log"
    if grep CONSOLE "$scratch/log"; then
        echo "$trace: the console has something to say"
        exit 1
    fi
    sed -n '/MARKS$/,/^END/p' "$scratch/dom" | sed '1d;$d' |
        sed 's/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g' >"$scratch/page"
    expected "$trace" >"$scratch/log_says"
    diff "$scratch/log_says" "$scratch/page" || {
        echo "$trace: the page says something else (>) than the log (<)"
        exit 1
    }
    echo "$(basename "$trace"): ok, $(head -n 2 "$scratch/page" | paste -sd ' ')"
done
