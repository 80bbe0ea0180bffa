/** `skiff export FILE`: the live objects of a cluster as JSON, one a line, for `skiff import` and other programs (L4). */
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { printable } from '#base/printable'
import { completePart } from '#host/partFile'
import { type CliCommand, type CommandContext, progressFor } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { openOutput } from '../outputFile.ts'
import { type ConnectionFlags, withConnection, withConnectionFlags } from '../past/connection.ts'
import type { Draft } from '../past/forkPlan.ts'
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
  if (report.failed.length > 0)
    throw new CommandError('internal', 'not all kinds could be read: the export is incomplete', { details: report.failed.map((line) => printable(line)) })
}

type Write = (take: (text: string) => Promise<void>) => Promise<ExportReport>

const lineOf = (object: Draft) => `${printable(stringifyExactly(object))}\n`

/** The file holds Secrets, so that only its owner may read it. */
async function toFile(context: CommandContext, file: string, write: Write): Promise<ExportReport> {
  const output = await openOutput(file)
  context.ifInterrupted(`${file} is as it was; ${output.part} can be removed`)
  return completePart(output, (handle) => write((text) => handle.appendFile(text)))
}

function describe({ exported, revision, left, unlistable }: ExportReport): string {
  const reasons = [...left].map(([reason, count]) => `${count} × ${reason}`)
  return [
    `${exported} objects of revision ${revision}`,
    ...(reasons.length > 0 ? [`Left out: ${reasons.join(', ')}`] : []),
    ...(unlistable.length > 0 ? [`Kinds that cannot be read at a revision: ${unlistable.join(', ')}`] : []),
  ].join('\n')
}
