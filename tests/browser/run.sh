#!/usr/bin/env bash
# Looks at the pages of the trace tool, the HTTP server and the course in headless Chromium. Builds
# nothing. It needs node (18 or newer) and Chromium; see `run.mjs` for its options.
#
# tests/browser/run.sh [OPTION...] [CHECK...]
set -euo pipefail
here=$(dirname "$0")
command -v node >/dev/null || { echo "run.sh: needs node 18 or newer" >&2; exit 2; }
: "${CHROMIUM:=$(command -v chromium || command -v chromium-browser || command -v google-chrome)}"
[ -n "$CHROMIUM" ] || { echo "run.sh: needs Chromium; CHROMIUM names its program" >&2; exit 2; }
CHROMIUM=$CHROMIUM exec node "$here/run.mjs" "$@"
