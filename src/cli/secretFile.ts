/** Secrets that a flag takes from a file (L4): every user of a machine can read the arguments of a command. */
import { createReadStream } from 'node:fs'
import fs from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { messageOf } from '#base/messageOf'
import { CommandError } from './exitCodes.ts'

/**
 * The secret that one of two flags gives, `--NAME SECRET` or `--NAME-file FILE`; undefined: neither is given.
 * @param file - is standard input
 * @throws CommandError usage
 */
export async function givenSecret(name: string, secret: string | undefined, file: string | undefined): Promise<string | undefined> {
  if (secret !== undefined && file !== undefined) throw new CommandError('usage', `--${name} and --${name}-file: one of them is enough`)
  if (file === undefined) return secret
  try {
    return (await (file === '-' ? text(createReadStream('', { fd: 0, autoClose: false })) : fs.readFile(file, 'utf8'))).trim()
  } catch (error) {
    throw new CommandError('usage', `--${name}-file ${file}: ${messageOf(error)}`, { cause: error })
  }
}
