/**
 * Keeps a record of unexpected ends of the server and the nodes (L5): a log for people, with the last lines of what ended, and counts for `status`. Both are bounded.
 * One writer at a time changes it: the server and several nodes may end at once.
 */
import { bareMap } from '#base/bareMap'
import type { Clock } from '#base/clock'
import { formatTime } from '#base/time'
import { readTextIfExists, writeFileAtomic, writeSmallJson } from '#host/files'
import { withLockFile } from '#host/lockFile'
import type { ClusterPaths } from './clusterState.ts'

export interface Restarts {
  readonly count: number
  readonly lastMs: number
  /** How it ended the last time, such as `signal SIGKILL`. */
  readonly ending: string
}

/** By what ended: `server`, or a node's name. */
export type RestartRecord = Readonly<Record<string, Restarts>>

export interface CrashReport {
  readonly what: string
  readonly ending: string
  readonly atMs: number
  /** The last lines of its log. */
  readonly lines: readonly string[]
}

/** The oldest entries leave the log beyond this. */
const mostCharacters = 64 * 1024
/** Far longer than a write takes. */
const lockTimeoutMs = 10_000
const entryStart = /^\d{4}-\d\d-\d\dT/m

export async function readRestarts(paths: ClusterPaths): Promise<RestartRecord> {
  const text = await readTextIfExists(paths.restarts)
  return bareMap(text ? (JSON.parse(text) as RestartRecord) : {})
}

/** Counts an end and adds it to the log. @throws Error when the files cannot be written, as on a full disk */
export async function recordRestart(paths: ClusterPaths, report: CrashReport, clock: Clock): Promise<void> {
  const refuse = (pid: number | undefined) => new Error(`process ${pid ?? 'unknown'} holds ${paths.restarts}.lock and does not let go`)
  await withLockFile(`${paths.restarts}.lock`, { clock, timeoutMs: lockTimeoutMs, refuse }, () => write(paths, report))
}

async function write(paths: ClusterPaths, { what, ending, atMs, lines }: CrashReport): Promise<void> {
  const before = await readRestarts(paths)
  const count = (before[what]?.count ?? 0) + 1
  await writeSmallJson(paths.restarts, JSON.stringify({ ...before, [what]: { count, lastMs: atMs, ending } satisfies Restarts }), 0o600)
  const entry = [`${formatTime(atMs)} ${what} ended: ${ending} (${count} in all)`, ...lines.map((line) => `    ${line}`), ''].join('\n')
  const text = ((await readTextIfExists(paths.crashes)) ?? '') + entry
  await writeFileAtomic(paths.crashes, newest(text), 0o600)
}

/** The newest whole entries that fit. */
function newest(text: string): string {
  if (text.length <= mostCharacters) return text
  const kept = text.slice(-mostCharacters)
  const start = kept.search(entryStart)
  return start < 0 ? '' : kept.slice(start)
}
