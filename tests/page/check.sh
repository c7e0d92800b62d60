#!/usr/bin/env bash
# Looks at timelines in headless Chromium: no error in the console, the lanes equal to those of
# `trace lanes`, a click shows the cause, no scrolling sideways at 400 px.
#
# tests/page/check.sh TRACE_TOOL ECHO_TRACE...
set -euo pipefail
tool=$1
shift
here=$(dirname "$0")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)

# Loads a page; what it comes to is in $scratch/dom.
load() {
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars \
        --user-data-dir="$scratch/profile" --enable-logging=stderr --window-size=1400,800 \
        --virtual-time-budget=3000 --dump-dom "file://$1" >"$scratch/dom" 2>"$scratch/log"
    if grep 'CONSOLE' "$scratch/log"; then
        echo "$1: the console has something to say"
        exit 1
    fi
}

# With <, > and & as they are.
report() {
    sed -n '/REPORT/,/^END/p' "$scratch/dom" | sed 's/.*REPORT/REPORT/; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g'
}

for trace in "$@"; do
    "$tool" timeline -o "$scratch/page.html" "$trace"
    { cat "$scratch/page.html"; echo '<script>'; cat "$here/drive.js"; echo '</script>'; } >"$scratch/driven.html"
    "$tool" lanes "$trace" >"$scratch/lanes"
    for width in 1280 400; do
        # In a frame: a window of the browser has a least width.
        cat >"$scratch/frame.html" <<HTML
<!doctype html><iframe src="driven.html" style="width:${width}px;height:760px;border:0"></iframe>
<script>addEventListener("message", (event) => {
  const report = document.createElement("pre");
  report.textContent = event.data;
  document.body.append(report);
});</script>
HTML
        load "$scratch/frame.html"
        report >"$scratch/report"
        for line in "width: $width" 'sideways: 0'  'wrong causes: 0' 'drawn: true' 'keys zoom: true' 'axis: time'; do
            grep -qx "$line" "$scratch/report" || { echo "$trace at $width: not \`$line\`"; cat "$scratch/report"; exit 1; }
        done
        sed -n '/^LANES/,/^END/p' "$scratch/report" | sed '1d;$d' | diff "$scratch/lanes" - ||
            { echo "$trace: the page has other lanes than \`trace lanes\`"; exit 1; }
    done
    echo "$(basename "$trace"): ok, $(grep 'painted ms' "$scratch/report")"
done
