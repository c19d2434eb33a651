#!/usr/bin/env bash
# Installs the peers when they are missing or stale, then runs the end-to-end tests.
# Arguments go to go test: e2e/run.sh -run TestPeersServe402 -v
# It never skips: without Node.js, npm or the packages it fails and says what is missing.
set -euo pipefail
cd "$(dirname "$0")"

fail() {
	echo "e2e: $*" >&2
	if [ "${CI:-}" != true ]; then
		echo "e2e: the rest of the tests need only Go: go test ./..." >&2
	fi
	exit 1
}

command -v go >/dev/null || fail "go is not on the PATH"
command -v node >/dev/null || fail "node is not on the PATH: the sellers need Node.js 20 or newer"
command -v npm >/dev/null || fail "npm is not on the PATH: it installs the sellers and the chain"
command -v strace >/dev/null || fail "strace is not on the PATH: the power-loss test records with it (Linux; Debian: apt-get install strace)"
if [ -z "${CHROMIUM:-}" ]; then
	command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
		fail "chromium is not on the PATH: the tests of the page drive it (Debian: apt-get install chromium; or set CHROMIUM)"
fi
major=$(node -p 'process.versions.node.split(".")[0]')
[ "$major" -ge 20 ] || fail "Node.js $major is too old: the sellers need 20 or newer"

# The stamp is the inputs of the install that made node_modules.
stamp=peers/node_modules/.installed
wanted=$(cat peers/package.json peers/package-lock.json peers/.npmrc && node -p 'process.platform + process.arch')
if [ "$(cat "$stamp" 2>/dev/null || true)" != "$wanted" ]; then
	(cd peers && npm ci --no-audit --no-fund) || fail "npm ci failed in e2e/peers: is the npm registry within reach?"
	printf '%s\n' "$wanted" >"$stamp"
fi

# Most of the time is spent waiting for sellers and clocks, so more tests than processors run at once.
exec go test -tags e2e -count=1 -timeout 15m -parallel 8 "$@" ./...
