/** Turns errors of the operating system into messages with a way out (L4): a full disk, missing rights, a file where a directory should be. */
import { messageOf } from '#base/messageOf'
import { ExecError } from '#host/exec'
import { CommandError } from './exitCodes.ts'

interface SystemError extends Error {
  readonly code: string
  readonly syscall: string
  readonly path?: string
  readonly dest?: string
}

const room = 'make room on that disk and run the command again; skiff delete works on a full disk too'
const otherPlace = 'run the command as the owner of that place, or name another directory in SKIFF_HOME'

/** The message for an error on a path, with the remedy. */
const meanings: ReadonlyMap<string, { readonly says: (place: string) => string; readonly hint: string }> = new Map([
  ['ENOSPC', { says: (place) => `the disk is full: ${place} cannot be written`, hint: room }],
  ['EDQUOT', { says: (place) => `the disk quota is used up: ${place} cannot be written`, hint: room }],
  ['EROFS', { says: (place) => `${place} is on a read-only file system`, hint: otherPlace }],
  ['EACCES', { says: (place) => `this user has no right to use ${place}`, hint: otherPlace }],
  ['EPERM', { says: (place) => `this user has no right to change ${place}`, hint: otherPlace }],
  ['ENOTDIR', { says: (place) => `${place}: a file stands where a directory is needed`, hint: otherPlace }],
  ['EEXIST', { says: (place) => `${place}: a file stands where a directory is needed`, hint: otherPlace }],
  ['EISDIR', { says: (place) => `${place} is a directory, a file is needed`, hint: otherPlace }],
  ['ENOENT', { says: (place) => `${place} does not exist and cannot be made`, hint: otherPlace }],
])

/** They mean this only where a directory is made. */
const ofDirectories: ReadonlySet<string> = new Set(['EEXIST', 'ENOENT'])

/** The error as a command reports it, or the same error when it is none of the operating system's. @param hint instead of the usual one */
export function asCommandError(error: unknown, hint?: string): unknown {
  if (error instanceof ExecError) return new CommandError('internal', messageOf(error), { cause: error })
  if (!isSystemError(error)) return error
  const place = error.dest ?? error.path
  const meaning = meanings.get(error.code)
  if (!meaning || (ofDirectories.has(error.code) && error.syscall !== 'mkdir')) return error
  // An error of a write to an open file does not name the file.
  return new CommandError('unmetPrerequisite', meaning.says(place ?? 'a file of the cluster'), { hint: hint ?? meaning.hint, cause: error })
}

function isSystemError(error: unknown): error is SystemError {
  return error instanceof Error && 'syscall' in error && typeof (error as { code?: unknown }).code === 'string'
}
