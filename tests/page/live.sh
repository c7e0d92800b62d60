#!/usr/bin/env bash
# Loads the live page of the HTTP server in headless Chromium, lets it show what comes for three
# seconds, and holds it to an empty console. (What it is sent is held by tests/servers.rs.)
#
# tests/page/live.sh HTTP_EXAMPLE
set -euo pipefail
scratch=$(mktemp -d)
"$1" --addr 127.0.0.1:0 --kernel-page >"$scratch/out" 2>/dev/null &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$scratch"' EXIT
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
for _ in $(seq 100); do
    addr=$(sed -n 's/^listening on //p' "$scratch/out")
    [ -z "$addr" ] || break
    sleep 0.05
done
timeout 60 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$scratch/profile" \
    --enable-logging=stderr --timeout=3000 --screenshot="$scratch/page.png" \
    "http://$addr/kernel" >"$scratch/log" 2>&1
if grep CONSOLE "$scratch/log"; then
    echo "the console has something to say"
    exit 1
fi
[ -s "$scratch/page.png" ]
echo "live page: ok"
