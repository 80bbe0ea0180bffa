/**
 * `skiff bundle`: state, history, logs, traces and metrics of a cluster in one file, without secrets (L4); `show`, `serve` and `fork` read such a file, as
 * `skiff ui FILE` does.
 */
import { parseDuration } from '#api/machinery/duration'
import { printable } from '#base/printable'
import { createHttpTransport } from '#client/httpTransport'
import { openBundle } from '../bundle/bundleReader.ts'
import type { BundleFacts } from '../bundle/format.ts'
import type { WrittenBundle } from '../bundle/writeBundle.ts'
import type { StillServer } from '../bundles.ts'
import { type CliCommand, type CommandContext, checkName, progressFor, resolveCluster } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { chosenConnection, connectionError, type PastConnection } from '../past/connection.ts'
import { writeKubeconfigOf } from '../past/servedKubeconfig.ts'
import { wordsOf } from '../past/when.ts'
import { makeFork } from './fork.ts'
import { table } from './status.ts'

interface Flags {
  readonly name?: string
  readonly kubeconfig?: string
  readonly context?: string
  readonly to?: string
  readonly history?: string
  readonly withSecrets?: boolean
  readonly offline?: boolean
  readonly quiet?: boolean
}

export const bundle: CliCommand = {
  name: 'bundle',
  register: (program, context) => {
    const group = program
      .command('bundle')
      .description('write state, history, logs, traces and metrics of a cluster to one file, without secrets; skiff ui FILE opens it')
      .option('--name <cluster>', 'the cluster, where there are several')
      .option('--kubeconfig <file>', 'a kubeconfig whose cluster and user are taken instead; what the user may not read is left out')
      .option('--context <name>', 'the context of that kubeconfig')
      .option('--to <file>', 'the file (default: CLUSTER.skiff)')
      .option('--history <duration>', 'age of the oldest state in it (default: all that the cluster keeps)')
      .option('--with-secrets', 'keep the values of Secrets, tokens and keys')
      .option('--offline', 'of a local cluster that is stopped')
      .option('-q, --quiet', 'print nothing but errors')
      .action((flags: Flags) => write(context, flags))
    group
      .command('show <file> [part]')
      .description('print what a bundle has, or one part of it')
      .action((file: string, part: string | undefined) => show(context, file, part))
    group
      .command('serve <file>')
      .description('serve a bundle as a read-only API on localhost, for kubectl and skiff, until Ctrl-C')
      .action((file: string) => serve(context, file))
    group
      .command('fork <file> <name> [when]')
      .description('create a cluster with simulated nodes and the objects of a bundle, as they were at its end or at a point of its history')
      .option('-q, --quiet', 'print nothing but errors and what was left out')
      // -10m is no flag.
      .allowUnknownOption()
      .action((_file: string, _name: string, _when: string | undefined, { quiet = false }: Flags, { args }: { readonly args: readonly string[] }) => {
        const [file = '', name = '', when = 'now'] = wordsOf(args)
        return withBundle(context, file, ({ connection, takenMs }) => makeFork(context, connection, { when, nowMs: takenMs, name: checkName(name), quiet }))
      })
  },
}

async function write(context: CommandContext, { name, to, history, withSecrets = false, offline = false, quiet = false, ...flags }: Flags): Promise<void> {
  const historyMs = history === undefined ? undefined : parseDuration(history)
  if (history !== undefined && (historyMs === undefined || historyMs < 0))
    throw new CommandError('usage', `--history ${history}: expected a duration such as 10m or 24h`)
  if (offline && flags.kubeconfig !== undefined) throw new CommandError('usage', '--offline is for a local cluster, and --kubeconfig for another one')
  const source = offline ? await stoppedSource(context, name) : await runningSource(context, { ...flags, ...(name === undefined ? {} : { cluster: name }) })
  const output = to ?? `${source.cluster.replace(/[^\w.-]/g, '-')}.skiff`
  const progress = progressFor(context, quiet)
  try {
    const { writeBundle } = await import('../bundle/writeBundle.ts')
    const options = { ...source, historyMs, withSecrets }
    const written = await progress.step(`Writing ${output}`, () => writeBundle(context, options, output))
    progress.note(describe(written, output))
  } catch (error) {
    throw connectionError(error, { cluster: source.local })
  } finally {
    await source.close()
  }
}

async function runningSource(context: CommandContext, flags: Parameters<typeof chosenConnection>[1]) {
  const { options, cluster: local } = await chosenConnection(context, flags)
  const transport = createHttpTransport({ ...options, exactIntegers: true })
  return { transport, cluster: local ?? new URL(options.server).hostname, local, isStopped: false, close: () => transport.close() }
}

async function stoppedSource(context: CommandContext, name: string | undefined) {
  const local = await resolveCluster(context, name)
  const server = await context.bundles.serveStopped(local)
  const transport = transportTo(context, server)
  const close = async () => {
    await transport.close()
    await server.close()
  }
  return { transport, cluster: local, local, isStopped: true, close }
}

function transportTo({ clock }: CommandContext, { url: server, token: bearerToken, ca }: StillServer) {
  return createHttpTransport({ server, bearerToken, tls: { ca }, clock, userAgent: 'skiff', exactIntegers: true })
}

function describe({ bytes, objects, changes, oldestRevision, revision, isRedacted, missing }: WrittenBundle, file: string): string {
  const lines = [
    `${file}: ${(bytes / 2 ** 20).toFixed(1)} MiB, ${objects} objects, ${changes} changes, revisions ${oldestRevision} to ${revision}`,
    isRedacted ? 'Secrets, tokens and keys were replaced by ***' : 'It holds the values of Secrets: only its owner may read it',
    ...missing.slice(0, 10).map(({ what, reason }) => `Left out: ${what}: ${reason}`),
    ...(missing.length > 10 ? [`and ${missing.length - 10} more: skiff bundle show ${file}`] : []),
    `Open it with: skiff ui ${file}`,
  ]
  return lines.map((line) => printable(line)).join('\n')
}

async function show(context: CommandContext, file: string, part: string | undefined): Promise<void> {
  const bundle = await openBundle(file)
  try {
    if (part !== undefined) return await printPart(context, await bundle.read(part))
    const { parts, missing, ...facts } = bundle.index
    const rows = parts.map(({ name, bytes, packedBytes }) => [name, String(bytes), String(packedBytes)])
    const left = missing.map(({ what, reason }) => `left out: ${what}: ${reason}\n`).join('')
    context.stdout.write(`${factsText(facts)}${left}${table([['PART', 'BYTES', 'PACKED'], ...rows])}`)
  } finally {
    await bundle.close()
  }
}

/** Logs may hold what a terminal takes for commands. */
async function printPart({ stdout, local }: CommandContext, content: Buffer): Promise<void> {
  if (stdout.isTTY) stdout.write(content.toString())
  else await local.print(content)
}

function factsText({
  cluster,
  takenMs,
  revision,
  oldestRevision,
  isRedacted,
  skiffVersion,
  serverVersion,
  objects,
  changes,
}: Omit<BundleFacts, 'missing'>): string {
  return [
    `cluster: ${cluster}, ${serverVersion}`,
    `taken: ${new Date(takenMs).toISOString()}, by Skiff v${skiffVersion}`,
    `objects: ${objects} at revision ${revision}, and ${changes} changes since revision ${oldestRevision}`,
    `secrets: ${isRedacted ? 'replaced' : 'kept'}`,
  ]
    .map((line) => `${line}\n`)
    .join('')
}

interface ServedBundle {
  readonly connection: PastConnection
  readonly server: StillServer
  readonly takenMs: number
  readonly title: string
}

/** Serves a bundle while the work runs. */
async function withBundle<T>(context: CommandContext, file: string, work: (served: ServedBundle) => Promise<T>): Promise<T> {
  const server = await context.bundles.serve(file)
  const transport = transportTo(context, server)
  const { cluster, takenMs, revision } = server.index
  try {
    const title = `${cluster} of ${new Date(takenMs).toISOString()}, at revision ${revision}`
    return await work({ connection: { transport, namespace: 'default', cluster: undefined }, server, takenMs, title })
  } finally {
    await transport.close()
    await server.close()
  }
}

async function serve(context: CommandContext, file: string): Promise<void> {
  await withBundle(context, file, async ({ server, title }) => {
    const kubeconfig = await writeKubeconfigOf(context.local.directory(), server, { name: 'bundle', namespace: 'default' })
    context.stderr.write(`Cluster ${printable(title)}, read-only, until Ctrl-C. Use it with: export KUBECONFIG=${kubeconfig}\n`)
    context.stdout.write(`${kubeconfig}\n`)
    // The signal ends the process.
    return new Promise<never>(() => {})
  })
}
