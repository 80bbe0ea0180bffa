/**
 * Makes the backups of a local cluster when its schedule says so (L5): one at a time, a missed time once, the newest ones kept. It removes only files that the
 * record names and whose SHA-256 is that of the record. Several servers elect which of them does it.
 */
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import { messageOf } from '#base/messageOf'
import type { Metrics } from '#base/metrics'
import { bucketOf } from '#cli/backupOptions'
import { asCommandError } from '#cli/systemErrors'
import { withLockFile } from '#host/lockFile'
import { type ClusterPaths, type ClusterState, readState } from '../localCluster/clusterState.ts'
import type { BackupPlace } from './backupPlace.ts'
import { type BackupPlan, type BackupRecord, backupName, dueTime, surplusFiles, withBackupFile } from './backupPlan.ts'
import { readBackups, writeBackups } from './backupRecord.ts'
import { createBucketPlace } from './bucketPlace.ts'
import { createDirectoryPlace } from './directoryPlace.ts'

export interface ScheduledBackupsDeps {
  readonly paths: ClusterPaths
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Metrics
  /** Writes a snapshot of the cluster to a file. @throws Error */
  readonly save: (state: ClusterState, file: string) => Promise<unknown>
  readonly onFailure: (reason: string) => void
}

/** The plan is read each time: `up` may change it while the server runs. */
const lookEveryMs = 10_000
/** After a failure that could not be written down. */
const pauseMs = 10 * 60_000

class Busy extends Error {}

export function scheduledBackups(deps: ScheduledBackupsDeps): Component {
  const { paths, clock, log, metrics } = deps
  const total = metrics.counter({ name: 'skiff_backups_total', help: 'Scheduled backups that were tried, by result.', labels: ['result'] })
  const newest = metrics.gauge({ name: 'skiff_backup_last_success_timestamp_seconds', help: 'When the newest scheduled backup was complete.' })
  const failed = async (error: unknown) => {
    const reason = messageOf(asCommandError(error))
    log.error(error, 'A scheduled backup failed')
    total.inc({ result: 'failure' })
    deps.onFailure(reason)
    await writeBackups(paths, { ...(await readBackups(paths)), failure: { atMs: clock.now(), reason } })
  }
  const look = async (signal: AbortSignal): Promise<number> => {
    try {
      const state = await readState(paths)
      if (!state?.backup) return lookEveryMs
      await withLockFile(`${paths.backups}.lock`, { clock, timeoutMs: 0, refuse: () => new Busy() }, async () => {
        const made = await backUpIfDue(deps, state, state.backup as BackupPlan, signal)
        if (made) total.inc({ result: 'success' })
        const atMs = (made ?? (await readBackups(paths))).files.at(-1)?.atMs
        if (atMs !== undefined) newest.set(atMs / 1000)
      })
      return lookEveryMs
    } catch (error) {
      // A former leader that still makes one.
      if (signal.aborted || error instanceof Busy) return lookEveryMs
      return failed(error).then(
        () => lookEveryMs,
        () => pauseMs,
      )
    }
  }
  return {
    name: 'scheduled backups',
    async run(signal) {
      let sleepMs = lookEveryMs
      while (!signal.aborted) {
        await clock.sleep(sleepMs, signal).catch(() => {})
        if (!signal.aborted) sleepMs = await look(signal)
      }
    },
  }
}

/** @returns the record with the new backup; undefined when none is due. @throws Error */
async function backUpIfDue(deps: ScheduledBackupsDeps, state: ClusterState, plan: BackupPlan, signal: AbortSignal): Promise<BackupRecord | undefined> {
  const { paths, clock, log } = deps
  const before = await readBackups(paths)
  const dueMs = dueTime(plan, before, clock.now())
  if (dueMs === undefined) return undefined
  const place = placeOf(deps, plan, before)
  const name = backupName(state, dueMs)
  const saved = await place.add(name, (file) => deps.save(state, file), signal)
  log.info('Made a scheduled backup', { name, bytes: saved.bytes })
  const record = withBackupFile(before, plan.place, { name, ...saved, atMs: clock.now() }, dueMs)
  await writeBackups(paths, record)
  return removeSurplus(deps, place, record, plan.keep, signal)
}

function placeOf({ paths, clock }: ScheduledBackupsDeps, { place, credentials }: BackupPlan, before: BackupRecord): BackupPlace {
  const bucket = bucketOf(place)
  if (bucket) return createBucketPlace(bucket, { credentials, scratch: `${paths.backups}.part.db`, now: () => clock.now() })
  return createDirectoryPlace(place, before.place === place ? before.files.map(({ name }) => name) : [])
}

async function removeSurplus(
  { paths, log }: ScheduledBackupsDeps,
  place: BackupPlace,
  record: BackupRecord,
  keep: number,
  signal: AbortSignal,
): Promise<BackupRecord> {
  const surplus = surplusFiles(record, keep)
  if (surplus.length === 0) return record
  const left = new Set<string>()
  for (const { name, sha256 } of surplus) {
    try {
      const found = await place.digestOf(name, signal)
      if (found === sha256) await place.remove(name, signal)
      else if (found !== undefined) log.warn('A file with the name of an old backup is another one, and stays', { name })
    } catch (error) {
      // The backup itself is there. The next one tries again.
      log.error(error, 'An old backup could not be removed', { name })
      left.add(name)
    }
  }
  const kept = { ...record, files: record.files.filter((file) => left.has(file.name) || !surplus.includes(file)) }
  await writeBackups(paths, kept)
  return kept
}
