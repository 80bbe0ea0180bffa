/** `skiff import FILE`: creates the objects of `skiff export` in a cluster (L4). */
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { parseExactly } from '#api/machinery/json'
import { messageOf } from '#base/messageOf'
import { printable } from '#base/printable'
import { isMissing } from '#host/files'
import { type CliCommand, type CommandContext, progressFor } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { type ConnectionFlags, type PastConnection, withConnection, withConnectionFlags } from '../past/connection.ts'
import type { CopyReport } from '../past/copier.ts'
import type { Draft } from '../past/forkPlan.ts'
import { asCommandError } from '../systemErrors.ts'
import { type Imported, importObjects, tryImport } from '../transfer/importObjects.ts'

/** A request has 3 MiB at most, of which an export may escape each byte as six. */
const longestLine = 6 * 3 * 2 ** 20

interface Flags extends ConnectionFlags {
  readonly dryRun?: boolean
  readonly quiet?: boolean
}

export const importCommand: CliCommand = {
  name: 'import',
  register: (program, context) => {
    withConnectionFlags(
      program
        .command('import <file>')
        .description('create the objects of a file that skiff export has written; - is standard input. An object that is there stays as it is, and is named')
        .option('--dry-run', 'ask the cluster what it would answer, and create nothing')
        .option('-q, --quiet', 'print nothing but errors, and what was there'),
    ).action((file: string, flags: Flags) => withConnection(context, flags, (connection) => run(context, connection, file, flags)))
  },
}

async function run(context: CommandContext, { transport }: PastConnection, file: string, { dryRun = false, quiet = false }: Flags): Promise<void> {
  const progress = progressFor(context, quiet)
  const source = await openSource(file)
  const objects = objectsOf(source, file)
  if (!dryRun) context.ifInterrupted('the cluster has a part of the objects; the command can be run again')
  const report = await progress
    .step(dryRun ? `Trying ${file}` : `Importing ${file}`, () => (dryRun ? tryImport(transport, objects) : importObjects(transport, context.clock, objects)))
    .finally(() => source.destroy())
  for (const name of report.there) context.stderr.write(`there already: ${printable(name)}\n`)
  progress.note(`${report.created} objects ${dryRun ? 'would be created' : 'created'}`)
  refuse(report)
}

function refuse({ thereCount, failed }: CopyReport): void {
  if (failed.length > 0) throw new CommandError('internal', `objects were refused`, { details: failed.map((line) => printable(line)) })
  if (thereCount > 0) throw new CommandError('alreadyExists', `${thereCount} objects were there already, and are as they were`)
}

async function openSource(file: string): Promise<Readable> {
  if (file === '-') return createReadStream('', { fd: 0, autoClose: false })
  const handle = await open(file, 'r').catch((error: unknown) => {
    throw isMissing(error) ? new CommandError('notFound', `${file} does not exist`) : asCommandError(error, 'name a file that skiff export has written')
  })
  return handle.createReadStream()
}

async function* objectsOf(source: Readable, file: string): AsyncGenerator<Imported> {
  let line = 0
  for await (const text of linesOf(source)) {
    line++
    if (text.length > longestLine) throw new CommandError('usage', `${file}: line ${line} is longer than any object`)
    if (text.trim() !== '') yield { line, object: objectOf(text, `${file}: line ${line}`) }
  }
}

/** Ends with a part of a line that is too long. */
async function* linesOf(source: Readable): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of source.setEncoding('utf8')) {
    const lines = (rest + (chunk as string)).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
    if (rest.length > longestLine) break
  }
  yield rest
}

/** @throws CommandError usage */
function objectOf(text: string, place: string): Draft {
  let found: Partial<Draft> | undefined
  try {
    found = parseExactly(text) as Partial<Draft>
  } catch (error) {
    throw new CommandError('usage', `${place} is no JSON: ${messageOf(error)}`, { hint: 'each line is one object, as skiff export writes it' })
  }
  if (typeof found?.apiVersion !== 'string' || typeof found.kind !== 'string' || typeof found.metadata?.name !== 'string')
    throw new CommandError('usage', `${place} is no object with apiVersion, kind and metadata.name`)
  return found as Draft
}
