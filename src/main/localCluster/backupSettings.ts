/** The schedule of a cluster's backups (L5): given to `up` and kept with the cluster; its server follows it from then on, also when it runs already. */
import { stat } from 'node:fs/promises'
import { type BackupOptions, bucketOf, noSchedule } from '#cli/backupOptions'
import { CommandError } from '#cli/exitCodes'
import type { BackupPlan } from '../backup/backupPlan.ts'
import { type ClusterPaths, type ClusterState, writeState } from './clusterState.ts'

const keptByDefault = 10

/**
 * The plan of a cluster that had `before`; undefined: no backups.
 * @throws CommandError when a flag is missing, or the directory
 */
export async function backupPlanOf(before: BackupPlan | undefined, options: BackupOptions | undefined, nowMs: number): Promise<BackupPlan | undefined> {
  if (!options) return before
  const { schedule = before?.schedule, place = before?.place, keep = before?.keep ?? keptByDefault, credentials = before?.credentials } = options
  if (schedule === noSchedule) return undefined
  if (schedule === undefined) throw new CommandError('usage', '--backup-schedule is missing: when are backups made?', { hint: "such as '0 */6 * * *'" })
  if (place === undefined) throw new CommandError('usage', '--backup-dir is missing: where do backups go?')
  if (bucketOf(place)) {
    if (credentials === undefined) throw new CommandError('usage', `--backup-dir ${place} needs --backup-credentials, a file with keys for the bucket`)
    if (!(await stat(credentials).catch(() => undefined))?.isFile()) throw new CommandError('notFound', `--backup-credentials ${credentials} is no file`)
  } else if (!(await stat(place).catch(() => undefined))?.isDirectory()) {
    throw new CommandError('notFound', `--backup-dir ${place} is no directory`, { hint: 'make it first; it may be on another disk than the cluster' })
  }
  const sinceMs = schedule === before?.schedule ? before.sinceMs : nowMs
  return { schedule, place, keep, ...(credentials === undefined ? {} : { credentials }), sinceMs }
}

/** The cluster with this plan from now on. */
export async function withBackup(paths: ClusterPaths, state: ClusterState, backup: BackupPlan | undefined): Promise<ClusterState> {
  if (backup === state.backup) return state
  const changed = { ...state, backup }
  await writeState(paths, changed)
  return changed
}
