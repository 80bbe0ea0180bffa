/** Backups in a directory (L5). It is not made: a disk that is not mounted must not look like an empty directory. */
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { type BackupPlace, trailerOf } from './backupPlace.ts'

export function createDirectoryPlace(directory: string): BackupPlace {
  const fileOf = (name: string) => path.join(directory, name)
  return {
    async add(name, save) {
      await save(fileOf(name))
      const saved = await trailerOf(fileOf(name))
      if (!saved) throw new Error(`${fileOf(name)} is not what was saved`)
      return saved
    },
    digestOf: async (name) => (await trailerOf(fileOf(name)))?.sha256,
    remove: (name) => rm(fileOf(name), { force: true }),
  }
}
