/**
 * When a backup is due, what it is called, and which ones are removed (L5), pure. The plan is kept with the cluster; the record says which backups there are and
 * how the last one ended.
 */
import { parseCronSchedule } from '#api/helpers/cronSchedule'
import { greatest } from '#base/extremes'
import { formatTime } from '#base/time'
import { mostRecentTime, nextTime } from '#controllers/cronJob/schedule'

export interface BackupPlan {
  /** Five fields of cron, in UTC. */
  readonly schedule: string
  /** A directory, or an s3:// URL. */
  readonly place: string
  readonly keep: number
  readonly credentials?: string | undefined
  /** When it was made: earlier times of the schedule were not missed. */
  readonly sinceMs: number
}

export interface BackupFile {
  readonly name: string
  readonly bytes: number
  /** The snapshot's, hexadecimal: a file with another one is not this backup. */
  readonly sha256: string
  readonly atMs: number
}

export interface BackupRecord {
  /** Where the files are. */
  readonly place: string
  /** The time of the schedule that the newest backup was made for. */
  readonly doneMs?: number | undefined
  /** The oldest first. */
  readonly files: readonly BackupFile[]
  /** How the last attempt failed; absent after a backup. */
  readonly failure?: { readonly atMs: number; readonly reason: string } | undefined
}

export const noBackups: BackupRecord = { place: '', files: [] }

const retryAfterMs = 10 * 60_000

/** The newest time of the schedule without a backup. Undefined: there is none, or a backup for it has just failed. */
export function dueTime({ schedule, sinceMs }: BackupPlan, { doneMs, failure }: BackupRecord, nowMs: number): number | undefined {
  const cron = parseCronSchedule(schedule)
  if ('fault' in cron) return undefined
  // A time in the future is from a clock that was wrong.
  const afterMs = greatest([0, ...[sinceMs, doneMs ?? 0].filter((ms) => ms <= nowMs)])
  const dueMs = mostRecentTime(cron, afterMs, nowMs)
  if (dueMs === undefined || !failure || failure.atMs > nowMs || failure.atMs < dueMs) return dueMs
  return nowMs - failure.atMs >= retryAfterMs ? dueMs : undefined
}

/** Undefined when there is none within years. */
export function nextBackup({ schedule }: BackupPlan, nowMs: number): number | undefined {
  const cron = parseCronSchedule(schedule)
  return 'fault' in cron ? undefined : nextTime(cron, nowMs)
}

/** One name for each time of the schedule: a second attempt replaces what the first one left. */
export function backupName({ name, id }: { readonly name: string; readonly id: string }, dueMs: number): string {
  return `${name}-${id}-${formatTime(dueMs).replace(/[-:]/g, '')}.db`
}

/** The record with one more backup. Backups at another place are left alone, and forgotten. */
export function withBackupFile(record: BackupRecord, place: string, file: BackupFile, doneMs: number): BackupRecord {
  const before = record.place === place ? record.files.filter(({ name }) => name !== file.name) : []
  return { place, doneMs, files: [...before, file] }
}

export function surplusFiles({ files }: BackupRecord, keep: number): readonly BackupFile[] {
  return files.slice(0, Math.max(0, files.length - keep))
}
