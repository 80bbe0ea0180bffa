/** `skiff fork WHEN NAME`: a new simulated cluster with the objects that another one had then, to try out what would have happened (L4). */
import { printable } from '#base/printable'
import { type CliCommand, type CommandContext, checkName, progressFor } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { checkKubeconfig, kubeconfigPath } from '../kubeconfigFile.ts'
import { type ConnectionFlags, connectionError, type PastConnection, pointOf, withConnection, withConnectionFlags } from '../past/connection.ts'
import { copyPast, type ForkReport } from '../past/fork.ts'
import { listableKinds, objectsAt } from '../past/objects.ts'
import { wordsOf } from '../past/when.ts'
import { bringUp, parseOptions } from './up.ts'

const mostNodes = 10_000

export const fork: CliCommand = {
  name: 'fork',
  register: (program, context) => {
    withConnectionFlags(
      program
        .command('fork <when> <name>')
        .description('create a cluster with simulated nodes and the objects that a cluster had at a point in the past: skiff fork -10m whatif'),
    )
      .option('-q, --quiet', 'print nothing but errors and what was left out')
      // -10m is no flag.
      .allowUnknownOption()
      .action((_when: string, _name: string, flags: ConnectionFlags & { quiet?: boolean }, { args }: { readonly args: readonly string[] }) => {
        const [when = '', name = ''] = wordsOf(args)
        const nowMs = context.clock.now()
        return withConnection(context, flags, (connection) =>
          makeFork(context, connection, { when, nowMs, name: checkName(name), quiet: flags.quiet ?? false }),
        )
      })
  },
}

export interface ForkOptions {
  readonly when: string
  /** What `when` is relative to. */
  readonly nowMs: number
  readonly name: string
  readonly quiet: boolean
}

export async function makeFork(context: CommandContext, connection: PastConnection, { when, nowMs, name, quiet }: ForkOptions): Promise<void> {
  const { clock, env, home } = context
  if (await context.clusters.exists(name))
    throw new CommandError('alreadyExists', `cluster "${name}" is there`, { hint: `remove it first: skiff delete ${name}` })
  const { revision } = await pointOf(connection, when, nowMs)
  const progress = progressFor(context, quiet)
  const file = await kubeconfigPath({ variable: env.KUBECONFIG, home })
  await checkKubeconfig(file, clock)
  const nodes = await nodesAt(connection, revision)
  await bringUp(context, name, { ...parseOptions({ runtime: 'simulated' }), nodes: 0, simulatedNodes: nodes }, file, progress)
  const incomplete = `cluster "${name}" has a part of the objects: remove it with: skiff delete ${name}`
  context.ifInterrupted(incomplete)
  const past = { transport: connection.transport, revision, explain: (error: unknown) => connectionError(error, connection) }
  const copy = () => withConnection(context, { cluster: name }, ({ transport }) => copyPast(past, transport, clock))
  const report = await progress.step(`Objects of revision ${revision}`, copy).catch((error) => {
    context.stderr.write(`${incomplete}\n`)
    throw error
  })
  context.stdout.write(describe(name, revision, report))
}

/** As many nodes as the cluster had, at least one. */
async function nodesAt({ transport }: PastConnection, revision: number): Promise<number> {
  const kind = (await listableKinds(transport)).find(({ group, resource }) => group === '' && resource === 'nodes')
  let count = 0
  if (kind) for await (const _ of objectsAt(transport, kind, revision)) count++
  return Math.min(Math.max(count, 1), mostNodes)
}

function describe(name: string, revision: number, { created, there, left, kindsLeft, failed }: ForkReport): string {
  const reasons = [...left].map(([reason, count]) => `${count} × ${reason}`)
  return [
    `Cluster "${name}" has ${created} objects of revision ${revision}; ${there} more already existed in it.`,
    ...(reasons.length > 0 ? [`Left out: ${reasons.join(', ')}.`] : []),
    `Left out kinds: ${kindsLeft.join(', ')}.`,
    ...(failed.length > 0 ? [`Refused by the new cluster:`, ...failed.map((line) => `  ${printable(line)}`)] : []),
    `Use it with: kubectl --context skiff-${name} get pods -A`,
  ]
    .map((line) => `${line}\n`)
    .join('')
}
