#!/usr/bin/env bash
# Makes the moving picture of the README from the events FROM to TO of a log, in headless Chromium.
# See `movie.js`. The picture of one event does not move.
#
# tests/browser/movie.sh TRACE_TOOL TRACE FROM TO light|dark OUT.svg
set -euo pipefail
tool=$1 trace=$2 from=$3 to=$4 scheme=$5 out=$6
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
"$tool" timeline -o "$scratch/page.html" "$trace"
cat >>"$scratch/page.html" <<HTML
<script>
$(cat "$(dirname "$0")/movie.js")
opened.then(() => {
  const made = document.createElement("pre");
  made.id = "made";
  // In base64, so that the page's text has no markup in it.
  made.textContent = btoa(unescape(encodeURIComponent(movie($from, $to, "$scheme"))));
  document.body.replaceChildren(made);
});
</script>
HTML
"$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$scratch/profile" \
    --window-size=1280,800 --virtual-time-budget=3000 --dump-dom \
    "file://$scratch/page.html" >"$scratch/dom" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
sed -n 's/.*<pre id="made">\([^<]*\)<.*/\1/p' "$scratch/dom" | base64 -d >"$out"
[ -s "$out" ] || { cat "$scratch/log"; exit 1; }
