#!/usr/bin/env bash
# Looks at timelines in headless Chromium: no error in the console; lines, lanes, groups and the time
# on the CPU are those of the log; a click shows the cause; no scrolling sideways at 400 px. Of a log
# of a million lines it prints how long the page took to open with its state, and the longest step.
#
# tests/page/check.sh TRACE_TOOL TRACE...
source "$(dirname "$0")/browser.sh"

# With <, > and & as they are.
report() {
    sed -n '/REPORT/,/^END/p' "$scratch/dom" | sed 's/.*REPORT/REPORT/; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g'
}

# 1,000,000 events of 500 tasks that take turns.
big() {
    awk 'BEGIN {
        print "#trace v3 clock=real seed=0 tick=0.3s"
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
        printf "%9.6f %7d  #%04d %3d %-8s halt     tasks=500 tickets=0 timers=0 handles=0\n", at + 1, turn + 1, ++seq, 0, "kernel"
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
        NR > 1 && $1 ~ /^[0-9]+$/ { busy += micros($(NF - 3)) }
        END {
            printf "busy time: %.0f\n", busy
            print "axis at first: " (busy > 0 || real ? "time" : "turns")
        }' "real=$(head -n 1 "$1" | grep -c clock=real)"
    printf '%s\n' "width: $2" 'sideways: 0' 'wrong causes: 0' 'drawn: true' 'keys zoom: true' 'range hidden: true'
}

check() {
    "$tool" timeline -o "$scratch/page.html" "$1"
    { cat "$scratch/page.html"; echo '<script>'; cat "$here/drive.js"; echo '</script>'; } >"$scratch/driven.html"
    for width in $2; do
        # In a frame: a window of the browser has a least width.
        cat >"$scratch/frame.html" <<HTML
<!doctype html><body><script>
// The browser writes what it shows once everything has loaded.
const hold = document.body.appendChild(document.createElement("iframe"));
hold.contentDocument.open();
addEventListener("message", (event) => {
  const report = document.createElement("pre");
  report.textContent = event.data;
  document.body.append(report);
  hold.contentDocument.close();
});
</script><iframe src="driven.html" style="width:${width}px;height:760px;border:0"></iframe>
HTML
        load "$scratch/frame.html" --window-size=1400,800
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
    echo "$(basename "$1"): ok, $(grep ' ms: ' "$scratch/report" | paste -sd ' ')"
}

for trace in "$@"; do
    check "$trace" '1280 400' small
done
big >"$scratch/big.trace"
check "$scratch/big.trace" 1280 big
size=$(stat -c %s "$scratch/page.html")
[ "$size" -lt 10000000 ] || { echo "a page of 1,000,000 events has $size bytes"; exit 1; }
