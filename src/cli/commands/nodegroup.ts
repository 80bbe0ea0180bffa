/** `skiff nodegroup create|scale|ls|delete`: groups of simulated nodes (L4). `nodegroup serve`, for an autoscaler, is main/layouts/nodeGroupServer.ts. */
import { isDns1123Label } from '#api/machinery/names'
import { type CliCommand, type CommandContext, progressFor, resolveCluster } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { maxSimulatedNodes } from '../nodeLike.ts'
import { nodeLikeOf } from '../nodeLikeFile.ts'
import { printFound } from '../output.ts'
import { wholeNumber } from '../wholeNumber.ts'
import { table } from './status.ts'

interface Flags {
  name?: string
  quiet?: boolean
}

interface CreateFlags extends Flags {
  min: string
  max: string
  size?: string
  like?: string
}

const ofCluster = ['--name <cluster>', 'the cluster (default: the only one, or skiff)'] as const
const quietly = ['-q, --quiet', 'print nothing but errors'] as const

export const nodegroup: CliCommand = {
  name: 'nodegroup',
  register: (program, context) => {
    const groups = program
      .command('nodegroup')
      .description('groups of simulated nodes, which an autoscaler can change, too')
      .addHelpText('after', '\nskiff nodegroup serve --help lists the flags of the server that an autoscaler asks')
    groups
      .command('create <group>')
      .description('create a group in a running cluster, and wait until its nodes are ready')
      .option('--min <n>', 'the fewest nodes that it may have', '0')
      .option('--max <n>', 'the most nodes that it may have', '100')
      .option('--size <n>', 'how many nodes it gets now (default: those of --min)')
      .option('--like <file>', 'a Node as YAML with their name, labels, taints and capacity, as for: skiff nodes add')
      .option(...ofCluster)
      .option(...quietly)
      .action((group: string, flags: CreateFlags) => create(context, group, flags))
    groups
      .command('scale <group> <size>')
      .description('give a group so many nodes; the newest ones are removed')
      .option(...ofCluster)
      .option(...quietly)
      .action(async (group: string, size: string, { name, quiet = false }: Flags) =>
        context.clusters.scaleNodeGroup(
          await resolveCluster(context, name),
          group,
          wholeNumber('SIZE', size, 0, maxSimulatedNodes),
          progressFor(context, quiet),
        ),
      )
    groups
      .command('ls')
      .description('list them')
      .option(...ofCluster)
      .option('-o, --output <format>', 'json')
      .action(async ({ name, output }: Flags & { output?: string }) => {
        const found = await context.clusters.nodeGroups(await resolveCluster(context, name))
        printFound(context, output === 'json' ? 'json' : 'text', found, (all) =>
          table([['NODEGROUP', 'MIN', 'MAX', 'SIZE', 'READY'], ...all.map((one) => [one.name, one.min, one.max, one.size, one.ready].map(String))]),
        )
      })
    groups
      .command('delete <group>')
      .description('remove a group with its nodes')
      .option(...ofCluster)
      .option(...quietly)
      .action(async (group: string, { name, quiet = false }: Flags) =>
        context.clusters.deleteNodeGroup(await resolveCluster(context, name), group, progressFor(context, quiet)),
      )
  },
}

/** The names of its nodes are a little longer, and become labels. */
const longestName = 40

async function create(context: CommandContext, group: string, flags: CreateFlags): Promise<void> {
  const [problem] = isDns1123Label(group)
  if (problem || group.length > longestName) {
    throw new CommandError('usage', `"${group}" cannot be the name of a node group: ${problem ?? `it has more than ${longestName} characters`}`)
  }
  const max = wholeNumber('--max', flags.max, 1, maxSimulatedNodes)
  const min = wholeNumber('--min', flags.min, 0, max)
  const size = wholeNumber('--size', flags.size ?? flags.min, min, max)
  const cluster = await resolveCluster(context, flags.name)
  await context.clusters.createNodeGroup(
    cluster,
    { name: group, min, max, size, like: await nodeLikeOf(flags.like) },
    progressFor(context, flags.quiet ?? false),
  )
}
