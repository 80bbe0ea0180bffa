/** `skiff export FILE`: the live objects of a cluster as JSON, one a line, for `skiff import` and other programs (L4). */
import { randomUUID } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { isMissing } from '#host/files'
import { type CliCommand, type CommandContext, progressFor } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
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
  const write = (take: (text: string) => Promise<void>) => exportObjects(transport, options, (object) => take(lineOf(object)))
  const report = file === '-' ? await write(context.local.print) : await progress.step(`Exporting to ${file}`, () => toFile(context, file, write))
  progress.note(describe(report))
}

type Write = (take: (text: string) => Promise<void>) => Promise<ExportReport>

/** Characters that command terminals are escaped. */
function lineOf(object: Draft): string {
  return `${stringifyExactly(object).replace(/[\u007f-\u009f]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`
}

/** The file appears under its name when it is complete. It holds Secrets, so that only its owner may read it. */
async function toFile(context: CommandContext, file: string, write: Write): Promise<ExportReport> {
  const part = `${file}.${randomUUID()}.part`
  const handle = await open(part, 'wx', 0o600).catch((error: unknown) => {
    throw isMissing(error) ? new CommandError('notFound', `the folder of ${file} does not exist`) : asCommandError(error, 'name another file')
  })
  context.ifInterrupted(`${file} is as it was; ${part} can be removed`)
  try {
    const result = await write((text) => handle.appendFile(text))
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
