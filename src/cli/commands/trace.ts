/** `skiff trace`: the twelve hops of a pod from a manifest to running containers, with their times (L4). */
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { messageOf } from '#base/messageOf'
import type { PodTrace, Span } from '#trace/hops'
import { TraceClock } from '#trace/traceClock'
import type { CliCommand, CommandContext } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { withNamedCluster } from '../explain/flags.ts'
import { readManifest } from '../hops/manifest.ts'
import { apply, type TraceDeps, traceApplied, tracePod } from '../hops/podTrace.ts'
import { toHtml, toOtlp, waterfall } from '../hops/render.ts'
import { printFound } from '../output.ts'
import { type ConnectionFlags, type PastConnection, withConnection } from '../past/connection.ts'

interface Flags extends ConnectionFlags {
  readonly namespace?: string
  readonly filename?: string
  readonly output?: string
  readonly to?: string
  readonly timeout: string
  readonly forceConflicts?: boolean
}

const formats = ['text', 'json', 'otlp', 'html'] as const
type Format = (typeof formats)[number]

export const trace: CliCommand = {
  name: 'trace',
  register: (program: Command, context) => {
    withNamedCluster(
      program
        .command('trace <what>')
        .description(
          'show the twelve hops of a pod with their times; the pod comes from a manifest that is applied now (apply -f FILE), or exists (POD) and was recorded',
        ),
    )
      .option('-f, --filename <file>', 'with apply: a manifest of a pod, or of what makes pods; - is standard input')
      .option('-n, --namespace <namespace>', 'of the object (default: default)')
      .option('-o, --output <format>', 'json, otlp (for an OpenTelemetry collector) or html (one file)')
      .option('--to <file>', 'writes the output into this file')
      .option('--force-conflicts', 'with apply: takes fields over from other managers')
      .option('--timeout <seconds>', 'how long to wait until the pod runs', '60')
      .action((what: string, flags: Flags) => run(context, what, flags))
  },
}

async function run(context: CommandContext, what: string, flags: Flags): Promise<void> {
  const format = formatOf(flags.output)
  const timeoutMs = Number(flags.timeout) * 1000
  if (!(timeoutMs > 0)) throw new CommandError('usage', `--timeout ${flags.timeout}: expected seconds`)
  if ((what === 'apply') !== (flags.filename !== undefined)) throw new CommandError('usage', 'trace: expected apply -f FILE, or the name of a pod')
  const found = await withConnection(context, flags, (connection) => traced(context, connection, what, { ...flags, timeoutMs }))
  await print(context, format, found, flags.to)
}

function formatOf(text = 'text'): Format {
  const found = formats.find((format) => format === text)
  if (!found) throw new CommandError('usage', `-o ${text}: expected ${formats.slice(1).join(', ')}`)
  return found
}

async function traced(context: CommandContext, connection: PastConnection, what: string, flags: Flags & { readonly timeoutMs: number }): Promise<PodTrace> {
  const { clock } = context
  const { transport } = connection
  const { timeoutMs, forceConflicts } = flags
  const deps: TraceDeps = { transport, clock, namespace: flags.namespace ?? connection.namespace, timeoutMs, forceConflicts }
  if (flags.filename === undefined) return tracePod(deps, what.replace(/^(?:pods?|po)\//, ''))
  const time = new TraceClock(clock)
  const file = flags.filename
  const atMs = time.now()
  const object = readManifest(await textOf(file), file)
  const validation: Span = { atMs, durationMs: time.now() - atMs, decision: `${object.kind} ${object.metadata.name} is valid` }
  let tls: Span | undefined
  connection.onHandshake?.((durationMs, decision) => {
    tls ??= { atMs: time.now() - durationMs, durationMs, decision }
  })
  const applied = await apply(deps, object)
  return traceApplied(deps, applied, { validation, tls })
}

async function textOf(file: string): Promise<string> {
  return readFile(file === '-' ? '/dev/stdin' : file, 'utf8').catch((error: unknown) => {
    throw new CommandError('usage', `cannot read ${file}: ${messageOf(error)}`)
  })
}

async function print(context: CommandContext, format: Format, found: PodTrace, file: string | undefined): Promise<void> {
  if (file === undefined) {
    if (format === 'html') context.stdout.write(toHtml(found))
    else printFound(context, format === 'text' ? 'text' : 'json', printed(format, found), () => waterfall(found))
    return
  }
  const text = format === 'html' ? toHtml(found) : format === 'text' ? waterfall(found) : `${JSON.stringify(printed(format, found), null, 2)}\n`
  await writeFile(file, text)
  context.stdout.write(`Wrote ${file}\n`)
}

function printed(format: Format, found: PodTrace): object {
  return format === 'otlp' ? toOtlp(found, traceIdOf(found)) : found
}

/** The Audit-ID, where it is a UUID. */
function traceIdOf({ request = '' }: PodTrace): string {
  const digits = request.replaceAll('-', '')
  return /^(?!0+$)[0-9a-f]{32}$/.test(digits) ? digits : randomBytes(16).toString('hex')
}
