/** Reads a directory step by step (L1): a list of all its entries may be very large. */
import { type Dir, type Dirent, opendirSync } from 'node:fs'
import { attempt } from './timeSlices.ts'

/** Names of a directory's entries; begins with undefined, the step of opening it. A directory that cannot be read, or not to its end, has no further entries. */
export function* namesIn(path: string): Generator<string | undefined> {
  yield undefined
  const open = attempt(() => opendirSync(path))
  if (!open) return
  try {
    for (let entry = nextOf(open); entry; entry = nextOf(open)) yield entry.name
  } finally {
    attempt(() => open.closeSync())
  }
}

function nextOf(open: Dir): Dirent | undefined {
  return attempt(() => open.readSync()) ?? undefined
}
