#!/usr/bin/env bash
# Uses the live page of the HTTP server in headless Chromium, narrow and wide, with ten clients that
# wait, and holds it to what `live.js` finds and to an empty console. (What the page is sent is held
# by tests/servers.rs.)
#
# tests/page/live.sh HTTP_EXAMPLE
set -euo pipefail
here=$(dirname "$0")
scratch=$(mktemp -d)
mkdir "$scratch/files"
"$1" --addr 127.0.0.1:0 --kernel-page --files "$scratch/files" --deadline-idle 60000 \
    >"$scratch/out" 2>/dev/null &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$scratch"' EXIT
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
for _ in $(seq 100); do
    addr=$(sed -n 's/^listening on //p' "$scratch/out")
    [ -z "$addr" ] || break
    sleep 0.05
done
ask() {
    printf 'GET %s HTTP/1.1\r\nHost: x\r\nConnection: %s\r\n\r\n' "$1" "$2"
}
for fd in $(seq 20 29); do
    eval "exec $fd<>/dev/tcp/${addr%:*}/${addr##*:}"
    ask /plaintext keep-alive >&"$fd"
done
# The page with the check behind it, from the same server.
exec 3<>"/dev/tcp/${addr%:*}/${addr##*:}"
ask /kernel close >&3
{ sed '1,/^\r$/d' <&3 && echo '<script>' && cat "$here/live.js" && echo '</script>'; } \
    >"$scratch/files/page.html"
for width in 1280 400; do
    # In a frame: a window of the browser has a least width.
    cat >"$scratch/files/frame.html" <<HTML
<!doctype html><link rel="icon" href="data:,">
<iframe src="page.html" style="width:${width}px;height:760px;border:0"></iframe>
<pre id="report"></pre>
<!-- The page has loaded, and is dumped, when this has come. -->
<img src="/sleep?ms=5000" alt="">
<script>addEventListener("message", (event) => {
  document.getElementById("report").textContent = event.data;
});</script>
HTML
    timeout 60 "$browser" --headless --no-sandbox --disable-gpu --enable-logging=stderr \
        --user-data-dir="$scratch/profile" --window-size="$width,800" --timeout=20000 --dump-dom \
        "http://$addr/files/frame.html" >"$scratch/dom" 2>"$scratch/log"
    if grep CONSOLE "$scratch/log"; then
        echo "the console has something to say"
        exit 1
    fi
    for wanted in "width: $width" '12 tasks\|13 tasks\|14 tasks' 'sideways: 0' 'folded: 3 1' 'family: true' \
        'duration: true' 'unfolded: 0' 'tree: true' 'filtered: 1' 'why: true' 'sorted: true' \
        'lock: true'; do
        if ! grep -q "$wanted" "$scratch/dom"; then
            echo "live page, $width wide: expected $wanted in:"
            sed -n '/id="report"/,/<\/pre>/p' "$scratch/dom"
            exit 1
        fi
    done
done
echo "live page: ok"
