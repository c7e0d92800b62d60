#!/usr/bin/env bash
# Makes the picture of the README: a part of a timeline on the time axis, with the sentence about a
# line, in headless Chromium. The picture has twice the pixels of its size in the README.
#
# tests/browser/picture.sh TRACE_TOOL TRACE EVENT FROM_MS TO_MS light|dark OUT.png
set -euo pipefail
tool=$1 trace=$2 event=$3 from=$4 to=$5 scheme=$6 out=$7
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
"$tool" timeline -o "$scratch/page.html" "$trace"
cat >>"$scratch/page.html" <<HTML
<style>
header, .legend, .faults, #details ol, #details .hint { display: none !important; }
#details { border: 0; }
#details .sentence { margin: 0; font-size: 15px; }
</style>
<script>
opened.then(() => {
  view.axis = "time";
  view.arrows = false;
  choose(placeOf($event), false);
  [view.from, view.to] = [$from * 1000, $to * 1000];
  measure();
});
</script>
HTML
dark=1
[ "$scheme" = light ] || dark=0
"$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$scratch/profile" \
    --blink-settings=preferredColorScheme=$dark --force-device-scale-factor=2 \
    --window-size=830,"${HIGH:-420}" --virtual-time-budget=3000 --screenshot="$out" \
    "file://$scratch/page.html" 2>"$scratch/log" || { cat "$scratch/log"; exit 1; }
