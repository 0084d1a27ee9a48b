#!/usr/bin/env bash
# Makes sure that there is a Chromium: the tests draw the report of a simulated run with it and look at the picture.
# Nothing else needs it; without it those tests say SKIPPED (or fail, with CARA_REQUIRE_CHROMIUM=1).
#
# exit: 0 there is one; 1 there is none, and the reason is on stderr
# Does nothing when there is one. Debian only: Ubuntu's package of that name is a snap, which can't run in a container.
set -euo pipefail

say() { printf 'chromium: %s\n' "$*" >&2; }

# The same names, in the same order, as chaos/report/tests/browser.rs.
find_browser() {
  local name
  for name in chromium chromium-browser google-chrome; do
    command -v "$name" && return 0
  done
  return 1
}

if find_browser >/dev/null; then exit 0; fi
# chromium: the browser. fonts-dejavu-core: without a font the page is all boxes.
here=$(cd "$(dirname "$0")" && pwd)
"$here/apt.sh" chromium "the browser that draws the reports of simulated runs in the tests" chromium fonts-dejavu-core
browser=$(find_browser) || { say "apt-get has installed chromium, but no chromium is in PATH: look at dpkg -L chromium"; exit 1; }
say "$("$browser" --version 2>/dev/null || echo "$browser")"
