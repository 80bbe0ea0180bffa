/** Opens a file that a command writes (L4), before the command reads what it will write. */
import { stat } from 'node:fs/promises'
import path from 'node:path'
import { exists } from '#host/files'
import { openPart, type PartFile } from '#host/partFile'
import { CommandError } from './exitCodes.ts'
import { asCommandError } from './systemErrors.ts'

/** @throws CommandError when the file cannot be made there */
export async function openOutput(file: string): Promise<PartFile> {
  const hint = 'name another file'
  const folder = path.dirname(path.resolve(file))
  if (!(await exists(folder))) throw new CommandError('notFound', `the folder ${folder} does not exist`, { hint })
  if ((await stat(file).catch(() => undefined))?.isDirectory()) throw new CommandError('usage', `${file} is a directory, a file is needed`, { hint })
  return openPart(file).catch((error: unknown) => {
    throw asCommandError(error, hint)
  })
}
