/** Waits for the removal of a cluster's directory (L5), after which its processes have nothing to do: a user may remove it without `skiff delete`. */
import fs from 'node:fs/promises'
import type { Clock } from '#base/clock'
import { isMissing } from '#host/files'

const lookEveryMs = 2000

/** Resolves when the file is gone, or `signal` has aborted. The file is replaced by renaming only, so it is never missing for a moment. */
export async function untilMissing(file: string, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && !(await isGone(file))) await clock.sleep(lookEveryMs, signal).catch(() => {})
}

/** Any other error, such as of a disk, says nothing about the file. */
function isGone(file: string): Promise<boolean> {
  return fs.access(file).then(() => false, isMissing)
}
