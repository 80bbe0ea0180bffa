#!/bin/bash
# Runs in the machine, once in each boot: the tests of this boot, one process a file. A boot ends as by a power cut, also after a failure.
trap 'sync; echo o >/proc/sysrq-trigger; sleep 60' EXIT
. /mnt/in/settings
boot=$(($(cat /root/boots 2>/dev/null || echo 0) + 1))
echo "$boot" >/root/boots
if [ "$boot" = 1 ]; then
  # On the system's own disk, where a unit of the next boot finds them before this script runs.
  cp /mnt/in/node /usr/local/bin/node
  mkdir -p "$(dirname "$ROOT")"
  cp -a /mnt/in/root "$ROOT"
fi
ip link set lo up
cd "$ROOT" || exit 1
export NODE_ENV=test PATH="/usr/local/bin:$PATH"
for entry in "/mnt/in/boot-$boot"/*.mjs; do
  echo "MACHINE file $(basename "$entry" .mjs)"
  timeout --kill-after=10 "$FILE_SECONDS" node --enable-source-maps --test-reporter=spec --test-reporter-destination=stdout "$entry"
  echo "MACHINE code $?"
done
