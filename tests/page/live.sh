#!/usr/bin/env bash
# Uses the live page of the HTTP server in headless Chromium, at two widths, while twelve requests
# sleep and others are answered: see `live.js`. No error in the console.
#
# tests/page/live.sh HTTP_EXAMPLE
set -euo pipefail
here=$(dirname "$0")
scratch=$(mktemp -d)
mkdir "$scratch/files"
"$1" --addr 127.0.0.1:0 --kernel-page --files "$scratch/files" >"$scratch/out" 2>"$scratch/err" &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$scratch"' EXIT
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
addr=
for _ in $(seq 200); do
    addr=$(sed -n 's/^listening on //p' "$scratch/out")
    [ -z "$addr" ] || break
    sleep 0.05
done
[ -n "$addr" ] || { cat "$scratch/err"; exit 1; }
sleepers=()
for _ in $(seq 12); do
    exec {socket}<>"/dev/tcp/${addr%:*}/${addr##*:}"
    printf 'GET /sleep?ms=60000 HTTP/1.1\r\nHost: x\r\n\r\n' >&"$socket"
    sleepers+=("$socket")
done
# Of the same origin as the page. An open frame keeps the document from being complete until the
# script is done.
cat >"$scratch/files/frames.html" <<HTML
<!doctype html><link rel="icon" href="data:,">
<iframe src="/kernel" style="width:1280px;height:800px;border:0"></iframe>
<iframe src="/kernel" style="width:400px;height:800px;border:0"></iframe>
<script>$(cat "$here/live.js")</script>
HTML
timeout 90 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars \
    --user-data-dir="$scratch/profile" --enable-logging=stderr --window-size=1800,900 \
    --dump-dom "http://$addr/files/frames.html" >"$scratch/dom" 2>"$scratch/log"
if grep CONSOLE "$scratch/log"; then
    echo "the console has something to say"
    exit 1
fi
sed -n '/<pre>REPORT/,/^END/p' "$scratch/dom" | sed '1d;$d' >"$scratch/report"
for width in 1280 400; do
    cat <<EXPECTED
width: $width
headline: true
load: true
counts on: true
ends by: true
members: true
sideways: 0
sorted by: state ascending
filter has focus: true
filtered: true
why waits: true
why ran: true
sideways with why: 0
closed: true
tree: true
sideways as tree: 0
locks: mutex accounts, held by t901: 2 wait, longest 2.0 s: t902, t904; join 901 (t901): 1 waits, longest 2.0 s: t903
EXPECTED
    [ "$width" = 400 ] || echo
done | diff - "$scratch/report" || { echo "live page: not as expected"; exit 1; }
echo "live page: ok"
