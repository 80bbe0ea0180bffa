/** `skiff export FILE`: the live objects of a cluster as JSON, one a line, for `skiff import` and other programs (L4). */
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { type CliCommand, type CommandContext, progressFor } from '../command.ts'
import { type ConnectionFlags, withConnection, withConnectionFlags } from '../past/connection.ts'
import type { Draft } from '../past/forkPlan.ts'
import { asCommandError } from '../systemErrors.ts'
import { type ExportReport, exportObjects } from '../transfer/exportObjects.ts'

interface Flags extends ConnectionFlags {
  readonly namespace?: readonly string[]
  readonly include?: readonly string[]
  readonly quiet?: boolean
}

export const exportCommand: CliCommand = {
  name: 'export',
  register: (program, context) => {
    withConnectionFlags(
      program
        .command('export <file>')
        .description('write the objects that users made to a file, one JSON object a line; - is standard output. It holds Secrets, unencrypted')
        .option('-n, --namespace <name...>', 'only objects of these namespaces, and the namespaces')
        .option('--include <kind...>', 'kinds of which all objects are taken, also those that are otherwise left out, such as events, leases or secrets')
        .option('-q, --quiet', 'print nothing but errors'),
    ).action((file: string, flags: Flags) => withConnection(context, flags, ({ transport }) => run(context, transport, file, flags)))
  },
}

async function run(
  context: CommandContext,
  transport: Parameters<typeof exportObjects>[0],
  file: string,
  { namespace, include, quiet = false }: Flags,
): Promise<void> {
  const options = { namespaces: namespace ?? [], included: include ?? [] }
  const progress = progressFor(context, quiet)
  const target = file === '-' ? toStandardOutput : (write: Write) => toFile(file, write)
  const report = await progress.step(`Exporting to ${file}`, () =>
    target((handle) => exportObjects(transport, options, (object) => handle.appendFile(lineOf(object)))),
  )
  progress.note(describe(report))
}

type Write = (handle: FileHandle) => Promise<ExportReport>

/** Characters that command terminals are escaped. */
function lineOf(object: Draft): string {
  return `${stringifyExactly(object).replace(/[\u007f-\u009f]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`
}

/** A file, so that a slow reader slows the export down. */
async function toStandardOutput(write: Write): Promise<ExportReport> {
  const handle = await open('/dev/stdout', 'a')
  return write(handle).finally(() => handle.close())
}

/** The file appears under its name when it is complete. It holds Secrets, so that only its owner may read it. */
async function toFile(file: string, write: Write): Promise<ExportReport> {
  const part = `${file}.${process.pid}.part`
  const handle = await open(part, 'wx', 0o600).catch((error: unknown) => {
    throw asCommandError(error, 'name another file')
  })
  try {
    const result = await write(handle)
    await handle.sync()
    await rename(part, file)
    return result
  } catch (error) {
    await rm(part, { force: true })
    throw error
  } finally {
    await handle.close()
  }
}

function describe({ exported, revision, left, unreadable }: ExportReport): string {
  const reasons = [...left].map(([reason, count]) => `${count} × ${reason}`)
  return [
    `${exported} objects of revision ${revision}`,
    ...(reasons.length > 0 ? [`Left out: ${reasons.join(', ')}`] : []),
    ...(unreadable.length > 0 ? [`Kinds that cannot be read at a revision: ${unreadable.join(', ')}`] : []),
  ].join('\n')
}
