/**
 * Puts a snapshot in place of the embedded store of a cluster (L5). The new store is complete and on the disk before one rename replaces the old one, which is
 * kept under another name. Upstream: etcd etcdutl/snapshot Restore (v3.6).
 */
import { copyFile, link, rename, rm } from 'node:fs/promises'
import { CommandError } from '#cli/exitCodes'
import type { RestoredSnapshot, RestoreOptions } from '#cli/snapshots'
import { exists, makePrivateDirectory, syncDirectory } from '#host/files'
import { importIntoLmdb } from '#store/drivers/lmdbImport'
import { readSnapshot, SnapshotFigures, type SnapshotSummary } from '#store/snapshot/readSnapshot'
import { isStoreError } from '#store/storeError'
import { lockStore, storeFile } from '../apiserver/openStore.ts'
import type { ProcessTools } from '../layouts/processTools.ts'
import { withSnapshotFile } from './snapshotSource.ts'

/** The newest layout that this version reads. */
const newestMinor = 6

/**
 * @param directory of the store, made where it is missing
 * @param whenComplete is waited for before the new store replaces the old one
 * @throws CommandError
 */
export async function restoreSnapshot(
  file: string,
  directory: string,
  { bumpRevision, skipHashCheck }: RestoreOptions,
  tools: Pick<ProcessTools, 'log'>,
  whenComplete: () => Promise<void>,
): Promise<RestoredSnapshot> {
  return withSnapshotFile(file, skipHashCheck ? 'ignored' : 'needed', async (source) => {
    await makePrivateDirectory(directory)
    const release = await lockStore(directory, tools)
    const target = storeFile(directory)
    const fresh = `${target}-restore`
    try {
      await removeStore(fresh)
      const store = importIntoLmdb(fresh)
      const figures = new SnapshotFigures()
      let summary: SnapshotSummary
      let compactRevision: number
      try {
        summary = await readSnapshot(source, (changes) => store.add(changes), figures)
        checkVersion(file, summary.version)
        compactRevision = bumpRevision > 0 ? Math.max(summary.revision, summary.compactRevision) + bumpRevision : summary.compactRevision
        if (!Number.isSafeInteger(compactRevision)) throw new CommandError('usage', `--bump-revision ${bumpRevision}: the revision would be too large`)
        await store.end({ leases: summary.leases, auth: summary.auth, compactRevision })
      } finally {
        await store.close()
      }
      await whenComplete()
      const backup = (await exists(target)) ? await keep(target) : undefined
      await rename(fresh, target)
      await rm(`${target}-lock`, { force: true })
      await syncDirectory(directory)
      return { ...summary, hash: figures.hash, totalKey: figures.totalKey, backup, restoredRevision: Math.max(summary.revision, compactRevision) }
    } catch (error) {
      if (isStoreError(error)) throw new CommandError('internal', `the new store could not be written: ${error.message}`, { cause: error })
      throw error
    } finally {
      await removeStore(fresh)
      release()
    }
  })
}

async function removeStore(file: string): Promise<void> {
  await Promise.all(['', '-lock'].map((part) => rm(`${file}${part}`, { force: true })))
}

/** A second name for the store, with a copy of its journal: what a crash left there may not be in the store yet. @returns the name */
async function keep(file: string): Promise<string> {
  for (let number = 1; ; number++) {
    const backup = number === 1 ? `${file}.bak` : `${file}.bak-${number}`
    if (await exists(backup)) continue
    const journal = `${file}-journal`
    if (await exists(journal)) await copyFile(journal, `${backup}-journal`)
    await link(file, backup)
    return backup
  }
}

function checkVersion(file: string, version: string): void {
  const [major, minor] = version.split('.').map(Number)
  if (version === '' || (major === 3 && minor !== undefined && minor <= newestMinor)) return
  throw new CommandError('unmetPrerequisite', `${file} has the layout of etcd ${version}, and this version of Skiff reads layouts up to 3.${newestMinor}`, {
    hint: 'restore it with a newer version: npx skiff@latest snapshot restore',
  })
}
