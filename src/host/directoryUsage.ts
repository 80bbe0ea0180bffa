/**
 * Measures what a directory takes on its disk (L1): blocks and inodes of everything below it, without what is mounted there. Containers write such directories,
 * and change them meanwhile: they decide how large, deep and broken a directory is. Upstream: pkg/volume/util/fs GetInfo.
 */
import { lstatSync, type Stats } from 'node:fs'
import { namesIn } from './directoryNames.ts'
import { attempt, inTimeSlices, SharedTurns } from './timeSlices.ts'

export interface DirectoryUsage {
  readonly bytes: number
  readonly inodes: number
}

/** Measures a directory. A missing one takes nothing. */
export type MeasureDirectory = (directory: string) => Promise<DirectoryUsage>

/** Directories that are measured at the same time share the turns of the event loop. */
export function createDirectoryMeasure(): MeasureDirectory {
  const turns = new SharedTurns()
  return (directory) => inTimeSlices(walk(directory), turns)
}

/** Measures one directory by itself. */
export function directoryUsage(directory: string): Promise<DirectoryUsage> {
  return createDirectoryMeasure()(directory)
}

/**
 * Adds up everything below on the directory's own filesystem, one entry a step; a file with several names counts once. An entry that vanishes or cannot be read
 * counts nothing: the others still do.
 */
function* walk(directory: string): Generator<undefined, DirectoryUsage> {
  const root = statOf(directory)
  if (!root) return { bytes: 0, inodes: 0 }
  const linked = new Set<number>()
  const waiting = root.isDirectory() ? [directory] : []
  let [bytes, inodes] = [root.blocks * 512, 1]
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    for (const name of namesIn(path)) {
      yield
      const stat = name === undefined ? undefined : statOf(`${path}/${name}`)
      if (!stat || stat.dev !== root.dev || linked.has(stat.ino)) continue
      if (stat.nlink > 1 && !stat.isDirectory()) linked.add(stat.ino)
      bytes += stat.blocks * 512
      inodes++
      if (stat.isDirectory()) waiting.push(`${path}/${name}`)
    }
  }
  return { bytes, inodes }
}

function statOf(path: string): Stats | undefined {
  return attempt(() => lstatSync(path, { throwIfNoEntry: false }))
}
