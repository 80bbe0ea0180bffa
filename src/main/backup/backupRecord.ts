/** Which scheduled backups a cluster has, on disk (L5). Its server writes it, `status` reads it. */
import { messageOf } from '#base/messageOf'
import { readTextIfExists, writeSmallJson } from '#host/files'
import type { ClusterPaths } from '../localCluster/clusterState.ts'
import { type BackupRecord, noBackups } from './backupPlan.ts'

/** No backups where there is no record, and with the reason where it is damaged. */
export async function readBackups({ backups }: Pick<ClusterPaths, 'backups'>): Promise<BackupRecord> {
  const text = await readTextIfExists(backups)
  if (text === undefined) return noBackups
  try {
    const record = JSON.parse(text) as BackupRecord
    if (!Array.isArray(record?.files)) throw new Error('it names no files')
    return record
  } catch (error) {
    // Without it no backup would be made again. The files that it named stay.
    return { ...noBackups, failure: { atMs: 0, reason: `${backups} is damaged: ${messageOf(error)}` } }
  }
}

export function writeBackups({ backups }: Pick<ClusterPaths, 'backups'>, record: BackupRecord): Promise<void> {
  return writeSmallJson(backups, JSON.stringify(record), 0o600)
}
