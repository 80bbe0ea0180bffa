/**
 * Backups in a directory (L5). It is not made, and the first backup marks it: a disk that is not mounted must not look like a directory for backups, neither
 * when its mount point is missing nor when that is there and empty.
 */
import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { exists } from '#host/files'
import { type BackupPlace, trailerOf } from './backupPlace.ts'

const markName = '.skiff-backups'

/** @param earlier names of backups that were made there */
export function createDirectoryPlace(directory: string, earlier: readonly string[]): BackupPlace {
  const fileOf = (name: string) => path.join(directory, name)
  return {
    async add(name, save) {
      await checkMark(directory, earlier.map(fileOf))
      await save(fileOf(name))
      const saved = await trailerOf(fileOf(name))
      if (!saved) throw new Error(`${fileOf(name)} is not what was saved`)
      return saved
    },
    digestOf: async (name) => (await trailerOf(fileOf(name)))?.sha256,
    remove: (name) => rm(fileOf(name), { force: true }),
  }
}

/** @throws Error when the directory has neither its mark nor one of the earlier backups */
async function checkMark(directory: string, earlier: readonly string[]): Promise<void> {
  const mark = path.join(directory, markName)
  if (await exists(mark)) return
  const found = await Promise.all(earlier.map((file) => exists(file)))
  if (earlier.length > 0 && !found.includes(true))
    throw new Error(`${directory} has none of its earlier backups and no file ${markName}: mount its disk, or create that file to use the directory as it is`)
  await writeFile(mark, 'Scheduled backups of Skiff are in this directory.\n', { mode: 0o600 })
}
