/** A file that appears under its name when it is complete and on the disk (L1); until then it is a part next to it, which bears the process's id. */
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { listIfExists, syncDirectory } from './files.ts'
import { startTimeOf } from './processes.ts'

export interface PartFile {
  readonly file: string
  /** Where the content is until then. */
  readonly part: string
  readonly handle: FileHandle
}

/** Only the owner may read it. A file that another user has put there is not written to. */
export async function openPart(file: string): Promise<PartFile> {
  const part = `${file}.${process.pid}.part`
  await removeLeftParts(path.dirname(path.resolve(file)), path.basename(file))
  return { file, part, handle: await open(part, 'wx+', 0o600) }
}

/** Runs the work that writes the part, and gives it its name; removes it when the work fails. */
export async function completePart<T>({ file, part, handle }: PartFile, work: (handle: FileHandle) => Promise<T>): Promise<T> {
  try {
    const result = await work(handle)
    await handle.sync()
    await handle.close()
    await rename(part, file)
    await syncDirectory(path.dirname(path.resolve(file)))
    return result
  } catch (error) {
    await handle.close().catch(() => {})
    await rm(part, { force: true })
    // The error of a write names no file.
    throw error instanceof Error && 'syscall' in error && !('path' in error) ? Object.assign(error, { path: file }) : error
  }
}

/** Parts of processes that were killed. One that runs may be writing the same file. */
async function removeLeftParts(folder: string, base: string): Promise<void> {
  for (const name of await listIfExists(folder)) {
    const pid = name.startsWith(`${base}.`) ? /^\.(\d+)\.part$/.exec(name.slice(base.length))?.[1] : undefined
    if (pid !== undefined && (Number(pid) === process.pid || (await startTimeOf(Number(pid))) === undefined)) await rm(path.join(folder, name)).catch(() => {})
  }
}
