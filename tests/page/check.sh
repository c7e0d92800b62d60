#!/usr/bin/env bash
# Looks at timelines in headless Chromium: no error in the console; lines, lanes, groups and the time
# on the CPU are those of the log; a click shows the cause; no scrolling sideways at 400 px.
#
# tests/page/check.sh TRACE_TOOL TRACE...
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
        --virtual-time-budget=20000 --dump-dom "file://$1" >"$scratch/dom" 2>"$scratch/log"
    if grep 'CONSOLE' "$scratch/log"; then
        echo "$1: the console has something to say"
        exit 1
    fi
}

# With <, > and & as they are.
report() {
    sed -n '/REPORT/,/^END/p' "$scratch/dom" | sed 's/.*REPORT/REPORT/; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g'
}

# 1,000,000 events of 500 tasks that take turns.
big() {
    awk 'BEGIN {
        print "#trace v2 clock=real seed=0"
        for (task = 3; task < 503; task++) {
            printf "%9.6f %7d  #%04d %3d %-8s spawn    parent=-\n", 0, 0, ++seq, task, "conn-" task - 2
            cause[task] = seq
        }
        while (seq < 1000000) {
            turn++
            for (task = 3; task < 503; task++) {
                at = turn / 1000 + task / 600000
                head = sprintf("%9.6f %7d  #%%04d %3d %-8s ", at, turn, task, "conn-" task - 2)
                printf head "run      cause=#%04d\n", ++seq, cause[task]
                printf head "io       c%d read = %d\n", ++seq, task, 40 + (seq * 7919) % 1000
                head = sprintf("%9.6f %7d  #%%04d %3d %-8s ", at + 0.000001, turn, task, "conn-" task - 2)
                printf head "block    io c%d read k=%d at=net/src/http/connection.rs:%d\n", ++seq, task, turn * 500 + task, 200 + seq % 3
                printf head "wake     io c%d read k=%d cause=#%04d\n", ++seq, task, turn * 500 + task, seq - 1
                cause[task] = seq
            }
        }
    }'
}

# What the page is to say, from the log and from `trace tasks`.
expected() {
    awk '
        /^#/ { next }
        { n++; task = $4 }
        !(task in name) && task > 0 { name[task] = $5; group = $5; gsub(/[0-9]+/, "*", group); size[group]++; tasks++ }
        $6 == "run" && !(task in began) { began[task] = n }
        ($6 == "block" || $6 == "exit") && task in began { busy += n - began[task]; delete began[task] }
        END {
            for (task in began) busy += n - began[task]
            folded = 1 + tasks; unfolded = 1 + tasks
            for (group in size) if (size[group] >= 4) { unfolded++; folded += 1 - size[group] }
            print "busy events: " busy + 0
            print "rows folded: " folded
            print "rows unfolded: " unfolded
            print "range: " n
        }' "$1"
    "$tool" tasks "$1" | awk '
        function micros(span) {
            if (span ~ /us$/) return span + 0
            return span ~ /ms$/ ? span * 1000 : span * 1000000
        }
        NR > 1 { busy += micros($(NF - 3)) }
        END { printf "busy time: %.0f\n", busy }'
    case $(head -n 1 "$1") in *clock=real*) echo 'axis at first: time' ;; *) echo 'axis at first: turns' ;; esac
    printf '%s\n' "width: $2" 'sideways: 0' 'wrong causes: 0' 'drawn: true' 'keys zoom: true' 'range hidden: true'
}

check() {
    "$tool" timeline -o "$scratch/page.html" "$1"
    { cat "$scratch/page.html"; echo '<script>'; cat "$here/drive.js"; echo '</script>'; } >"$scratch/driven.html"
    for width in $2; do
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
        expected "$1" "$width" >"$scratch/expected"
        while read -r line; do
            grep -qx "$line" "$scratch/report" || {
                echo "$1 at $width: not \`$line\`"
                sed '/^LANES/,$d' "$scratch/report"
                exit 1
            }
        done <"$scratch/expected"
        every=1
        if [ "$3" = big ]; then every=997; else
            sed -n '/^LANES/,/^LINES/p' "$scratch/report" | sed '1d;$d' | diff <("$tool" lanes "$1") - ||
                { echo "$1: the page has other lanes than \`trace lanes\`"; exit 1; }
        fi
        sed -n '/^LINES/,/^END/p' "$scratch/report" | sed '1d;$d' |
            diff <(grep -v '^#' "$1" | awk "NR % $every == 1 % $every") - ||
            { echo "$1: the page has other lines than the trace"; exit 1; }
    done
    echo "$(basename "$1"): ok, $(grep 'painted ms' "$scratch/report")"
}

for trace in "$@"; do
    check "$trace" '1280 400' small
done
big >"$scratch/big.trace"
check "$scratch/big.trace" 1280 big
size=$(stat -c %s "$scratch/page.html")
[ "$size" -lt 10000000 ] || { echo "a page of 1,000,000 events has $size bytes"; exit 1; }
