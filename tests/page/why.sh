#!/usr/bin/env bash
# Compares the prose of the pages (`examples/trace/why.js`) with that of `trace why`: the whole
# answer for each event of each trace.
#
# tests/page/why.sh TRACE_TOOL TRACE...
source "$(dirname "$0")/browser.sh"

for trace in "$@"; do
    sed -n 's/^ *[0-9.]* *[0-9]* *#\([0-9][0-9]*\) .*/\1/p' "$trace" | while read -r seq; do
        echo "== $trace $seq"
        "$tool" why "$seq" "$trace"
    done
done >"$scratch/tool"

# The same in a page. A trace is text in an element of its own, and has no `<` of its own.
{
    echo '<!doctype html><body>'
    for trace in "$@"; do
        printf '<script type="text/plain" data-name="%s">\n' "$trace"
        cat "$trace"
        echo '</script>'
    done
    echo '<script>'
    cat "$here/../../examples/trace/why.js" "$here/why.js"
    echo '</script>'
} >"$scratch/page.html"
load "$scratch/page.html"
said SAID >"$scratch/page"
diff "$scratch/tool" "$scratch/page" >"$scratch/diff" || {
    echo "the page says something else (>) than \`trace why\` (<):"
    head -n 40 "$scratch/diff"
    exit 1
}
echo "why: ok, $(grep -c '^== ' "$scratch/tool") events of $# traces"
