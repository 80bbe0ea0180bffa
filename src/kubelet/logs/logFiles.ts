/**
 * The files of one container's log (L3): the one that is written to, and those that were renamed away, oldest first, `.gz` once compressed.
 * Upstream: kubelet/logs/container_log_manager.go (v1.36).
 */
import { basename, dirname } from 'node:path'
import { listIfExists } from '#host/files'

export const compressedSuffix = '.gz'
const temporarySuffix = '.tmp'

/** `20060102-150405` in the machine's time zone: sorts as it was renamed. */
export function rotationStamp(nowMs: number): string {
  const at = new Date(nowMs - new Date(nowMs).getTimezoneOffset() * 60_000).toISOString()
  return at.slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-')
}

/** Sorts the names in a log's directory: rotated files with lines, oldest first, and leftovers of an interrupted rotation. */
export function sortRotated(names: readonly string[]): { readonly inUse: readonly string[]; readonly unused: readonly string[] } {
  const all = new Set(names)
  const isUnused = (name: string) => name.endsWith(temporarySuffix) || (!name.endsWith(compressedSuffix) && all.has(`${name}${compressedSuffix}`))
  const sorted = [...names].sort()
  return { inUse: sorted.filter((name) => !isUnused(name)), unused: sorted.filter(isUnused) }
}

/** Paths of everything that was renamed away from `log`. */
export async function rotatedBeside(log: string): Promise<string[]> {
  const prefix = `${basename(log)}.`
  const directory = dirname(log)
  return (await listIfExists(directory)).filter((name) => name.startsWith(prefix)).map((name) => `${directory}/${name}`)
}

/** The renamed file's path as it was before it was compressed: what stays the same of it. */
export function rotationOf(path: string): string {
  return path.endsWith(compressedSuffix) ? path.slice(0, -compressedSuffix.length) : path
}

export function temporaryOf(path: string): string {
  return `${path}${temporarySuffix}`
}
