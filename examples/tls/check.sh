#!/usr/bin/env bash
# Talks to the HTTPS example with curl, the client of the examples, and headless Chromium. The server
# makes its certificate on the spot. curl must trust it, and refuse it when told nothing about it.
#
# examples/tls/check.sh FOLDER_OF_THE_EXAMPLES
set -euo pipefail
examples=$1
scratch=$(mktemp -d)
server=
cleanup() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$scratch"
}
trap cleanup EXIT

"$examples/https_server" "$scratch/own.pem" --addr 127.0.0.1:0 >"$scratch/out" 2>"$scratch/err" &
server=$!
for _ in $(seq 200); do
    port=$(sed -n 's/^listening on .*://p' "$scratch/out")
    [ -z "$port" ] || break
    kill -0 "$server" || { cat "$scratch/err"; exit 1; }
    sleep 0.05
done
page=https://localhost:$port

said=$(curl -sS --max-time 20 --cacert "$scratch/own.pem" "$page/one" "$page/two")
[ "$said" = $'This is /one, by TLS.\nThis is /two, by TLS.' ]
if curl -s --max-time 20 "$page/" >/dev/null; then
    echo "curl takes a certificate that nobody has signed"
    exit 1
fi
echo "curl: ok"

[ "$("$examples/https_client" "localhost:$port" / "$scratch/own.pem")" = 'This is /, by TLS.' ]
[ "$("$examples/tls_frames")" = $'stressed desserts\ndrawer reward\nlive evil' ]
echo "https_client, tls_frames: ok"

"$(dirname "$0")/../../tests/browser/run.sh" --https "$page/page" tls

kill -TERM "$server"
wait "$server"
server=
