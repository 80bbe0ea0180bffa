/** What the files of cgroup v1 and v2 have in common (L1): numbers, `key value` lines, processes, and the removal of directories. */
import { readdir, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isMissing, readTextIfExists } from './files.ts'

/** The number in a file; 0 when the file is absent. */
export const numberIn = async (file: string): Promise<number> => Number((await readTextIfExists(file))?.trim() ?? 0)

/** `key value` lines, as memory.stat has them. */
export function keyed(text: string): Map<string, number> {
  return new Map(text.split('\n').flatMap((line) => (line ? [[line.slice(0, line.indexOf(' ')), Number(line.slice(line.indexOf(' ') + 1))] as const] : [])))
}

const busyAttempts = 25
const busyWaitMs = 20

/** Removes a group's directory and those below it; an absent one is fine. @throws EBUSY while processes live, after half a second */
export async function removeTree(directory: string): Promise<void> {
  for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => [])) {
    if (entry.isDirectory()) await removeTree(join(directory, entry.name))
  }
  for (let attempt = 1; ; attempt++) {
    try {
      await rmdir(directory)
      return
    } catch (error) {
      if (isMissing(error)) return
      // A process that is just ending still counts for a moment.
      if ((error as NodeJS.ErrnoException).code !== 'EBUSY' || attempt === busyAttempts) throw error
      await new Promise((resolve) => setTimeout(resolve, busyWaitMs))
    }
  }
}

/** Names of the child groups; none when the directory is absent. */
export async function childDirectories(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => [])
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
}

/** Process ids of the group and of all groups below it. */
export async function processesBelow(directory: string): Promise<number[]> {
  const own = ((await readTextIfExists(join(directory, 'cgroup.procs'))) ?? '').split('\n').filter(Boolean).map(Number)
  const below = await Promise.all((await childDirectories(directory)).map((name) => processesBelow(join(directory, name))))
  return [...own, ...below.flat()]
}

/** A limit as v2 and pids.max write it: `max` for a negative one; undefined stays undefined. */
export const orMax = (value: number | undefined) => (value === undefined ? undefined : value < 0 ? 'max' : String(value))
