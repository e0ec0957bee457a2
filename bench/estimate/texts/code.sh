#!/usr/bin/env bash
set -euo pipefail
IFS=$'\n\t'
readonly ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
log() { printf '%s %s\n' "$(date -u +%FT%TZ)" "$*" >&2; }

backup() {
  local name="$1" target="${2:-/var/backups}"
  local file="${target}/${name}-$(date +%s).tar.zst"
  tar --exclude='*.tmp' -C "$ROOT" -cf - "$name" | zstd -q -T0 -o "$file"
  sha256sum "$file" | awk '{ print $1 }' >"${file}.sha256"
  log "wrote $file ($(stat -c %s "$file") bytes)"
}

for dir in "$ROOT"/data/*/; do
  [[ -d "$dir" ]] || continue
  if ! backup "data/$(basename "$dir")" "$@"; then
    log "failed: $dir (exit $?)"; exit 1
  fi
done
find /var/backups -name '*.tar.zst' -mtime +30 -print0 | xargs -0 -r rm -v --
