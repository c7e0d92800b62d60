#!/usr/bin/env bash
# Looks at the panel of the state in headless Chromium: at up to 200 lines of each log its rows are
# those of `trace state`, and its cards those of the rows; steps back and forth end where they began;
# a link opens it at its line; no scrolling sideways. See `state.js`.
#
# tests/page/state.sh TRACE_TOOL TRACE...
source "$(dirname "$0")/browser.sh"

# A page for each trace, in frames by turns narrow and wide. Each opens at its line in the middle.
nth=0
{
    # The browser writes what it shows once everything has loaded: a frame is loading until all have
    # reported.
    cat <<HTML
<!doctype html><body><script>
const reports = [], hold = document.body.appendChild(document.createElement("iframe"));
hold.contentDocument.open();
addEventListener("message", ({ source, data }) => {
  const frames = [...document.querySelectorAll("iframe[src]")];
  const nth = frames.findIndex((frame) => frame.contentWindow === source);
  reports[nth] = \`== \${nth + 1}\n\${data}\`;
  if (Object.keys(reports).length < $#) return;
  const report = document.createElement("pre");
  report.textContent = \`STATES\n\${reports.join("")}END\n\`;
  document.body.append(report);
  hold.contentDocument.close();
});
</script>
HTML
    for trace in "$@"; do
        nth=$((nth + 1))
        "$tool" timeline --source "$here/../.." -o "$scratch/$nth.html" "$trace" 2>"$scratch/said"
        { echo '<script>'; cat "$here/state.js"; echo '</script>'; } >>"$scratch/$nth.html"
        seqs=($(sed -n 's/^ *[0-9.]* *[0-9]* *#\([0-9][0-9]*\) .*/\1/p' "$trace"))
        every=$(((${#seqs[@]} + 199) / 200))
        middle=${seqs[$((${#seqs[@]} / 2))]}
        width=$((nth % 2 ? 400 : 1280))
        echo "<iframe src='$nth.html#$middle' style='width:${width}px;height:800px'></iframe>"
        {
            printf '%s\n' "== $nth" "opened at: $middle" "step: $every" 'sideways: 0' \
                'wrong cards: 0' 'wrong on the way back: 0' 'wrong after steps: 0' 'keys: true' \
                'moves: true' 'plays: true'
            for ((n = 0; n < ${#seqs[@]}; n += every)); do
                echo "-- ${seqs[n]}"
                "$tool" state --raw --at "#${seqs[n]}" "$trace"
            done
        } >>"$scratch/expected"
    done
} >"$scratch/frames.html"

load "$scratch/frames.html" --window-size=1400,900
said STATES >"$scratch/page"
diff "$scratch/expected" "$scratch/page" >"$scratch/diff" || {
    echo "the panel says something else (>) than \`trace state\` (<), or than it should:"
    head -n 40 "$scratch/diff"
    exit 1
}
echo "state: ok, $(grep -c '^-- ' "$scratch/page") lines of $# traces"
