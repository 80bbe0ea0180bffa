/** `skiff nodes ls|add|remove`: the nodes of a cluster, and more or fewer simulated ones while it runs (L4). */
import { type CliCommand, progressFor, resolveCluster } from '../command.ts'
import { maxSimulatedNodes } from '../nodeLike.ts'
import { nodeLikeOf } from '../nodeLikeFile.ts'
import { printFound } from '../output.ts'
import { wholeNumber } from '../wholeNumber.ts'
import { table } from './status.ts'

interface Flags {
  simulated: string
  like?: string
  quiet?: boolean
}

export const nodes: CliCommand = {
  name: 'nodes',
  register: (program, context) => {
    const group = program.command('nodes').description('the nodes of a cluster; more or fewer simulated ones')
    group
      .command('ls [name]')
      .description('list all of them')
      .option('-o, --output <format>', 'json')
      .action(async (name: string | undefined, { output }: { output?: string }) => {
        const { nodes: found } = await context.clusters.status(await resolveCluster(context, name))
        printFound(context, output === 'json' ? 'json' : 'text', found, (all) =>
          table([['NODE', 'STATE', 'RUNTIME', 'ADDRESS'], ...all.map((node) => [node.name, node.ready ? 'Ready' : 'NotReady', node.runtime, node.address])]),
        )
      })
    group
      .command('add [name]')
      .description('add simulated nodes to a running cluster, and wait until they are ready')
      .requiredOption('--simulated <n>', 'how many')
      .option('--like <file>', 'a Node as YAML with their name, labels, taints and capacity; {n}, {a,b,c} and {1..9} differ from node to node')
      .option('-q, --quiet', 'print nothing but errors')
      .action(async (name: string | undefined, flags: Flags) => {
        const cluster = await resolveCluster(context, name)
        await context.clusters.addNodes(cluster, countOf(flags), await nodeLikeOf(flags.like), progressFor(context, flags.quiet ?? false))
      })
    group
      .command('remove [name]')
      .description('remove the newest nodes that were added')
      .requiredOption('--simulated <n>', 'how many')
      .option('-q, --quiet', 'print nothing but errors')
      .action(async (name: string | undefined, flags: Flags) =>
        context.clusters.removeNodes(await resolveCluster(context, name), countOf(flags), progressFor(context, flags.quiet ?? false)),
      )
  },
}

const countOf = ({ simulated }: Flags) => wholeNumber('--simulated', simulated, 1, maxSimulatedNodes)
