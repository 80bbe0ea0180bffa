/** `skiff etcd member ls|add|remove|promote|move-leader|defrag`: the members of a cluster's own etcd (L4). Upstream: etcdctl member. */
import type { EtcdMemberDetails } from '../clusterManager.ts'
import { type CliCommand, type CommandContext, progressFor, resolveCluster } from '../command.ts'
import { printFound } from '../output.ts'
import { table } from './status.ts'

interface Flags {
  cluster?: string
  quiet?: boolean
}

export const etcd: CliCommand = {
  name: 'etcd',
  register: (program, context) => {
    const members = program.command('etcd').description("a cluster's own etcd, of skiff up --etcd").command('member').description('its members')
    members
      .command('ls')
      .description('list them, as etcd sees them')
      .option('--cluster <name>', 'the cluster (default: the only one, or skiff)')
      .option('-o, --output <format>', 'json')
      .action(async ({ cluster, output }: Flags & { output?: string }) => {
        const found = await context.clusters.etcdMembers(await resolveCluster(context, cluster))
        printFound(context, output === 'json' ? 'json' : 'text', found, (all) => table([header, ...all.map(rowOf)]))
      })
    members
      .command('add')
      .description('add a member: it gets the data first, and then a vote')
      .option('--learner', 'leave it without a vote; promote gives it one')
      .option('--cluster <name>', 'the cluster (default: the only one, or skiff)')
      .option('-q, --quiet', 'print nothing but errors')
      .action(async ({ cluster, quiet = false, learner = false }: Flags & { learner?: boolean }) => {
        const name = await resolveCluster(context, cluster)
        const member = await context.clusters.addEtcdMember(name, { learner }, progressFor(context, quiet))
        context.stdout.write(`${member}\n`)
        noteServers(context, quiet, name)
      })
    members
      .command('remove <member>')
      .description('take a member out, with its data')
      .option('--cluster <name>', 'the cluster (default: the only one, or skiff)')
      .option('-q, --quiet', 'print nothing but errors')
      .action(async (member: string, { cluster, quiet = false }: Flags) => {
        const name = await resolveCluster(context, cluster)
        await context.clusters.removeEtcdMember(name, member, progressFor(context, quiet))
        noteServers(context, quiet, name)
      })
    members
      .command('promote <member>')
      .description('give a learner a vote, as soon as it has the data')
      .option('--cluster <name>', 'the cluster (default: the only one, or skiff)')
      .option('-q, --quiet', 'print nothing but errors')
      .action(async (member: string, { cluster, quiet = false }: Flags) =>
        context.clusters.promoteEtcdMember(await resolveCluster(context, cluster), member, progressFor(context, quiet)),
      )
    members
      .command('move-leader <member>')
      .description('let a member lead, such as before maintenance of the present leader')
      .option('--cluster <name>', 'the cluster (default: the only one, or skiff)')
      .option('-q, --quiet', 'print nothing but errors')
      .action(async (member: string, { cluster, quiet = false }: Flags) =>
        context.clusters.moveEtcdLeader(await resolveCluster(context, cluster), member, progressFor(context, quiet)),
      )
    members
      .command('defrag [member]')
      .description('rewrite the database of a member without its free pages; without a name of all, one after the other, the leader last')
      .option('--cluster <name>', 'the cluster (default: the only one, or skiff)')
      .option('-q, --quiet', 'print nothing but errors')
      .action(async (member: string | undefined, { cluster, quiet = false }: Flags) =>
        context.clusters.defragmentEtcd(await resolveCluster(context, cluster), member, progressFor(context, quiet)),
      )
  },
}

function noteServers(context: CommandContext, quiet: boolean, cluster: string): void {
  progressFor(context, quiet).note(`The API server asks the members of its last start: skiff stop ${cluster}; skiff start ${cluster} lets it ask these`)
}

const header = ['ID', 'NAME', 'ROLE', 'URL', 'VERSION', 'DB SIZE', 'IN USE']
const mebibytes = (bytes: number | undefined) => (bytes === undefined ? '' : `${(bytes / 2 ** 20).toFixed(1)}Mi`)

function rowOf({ id, name, role, url, version, dbBytes, dbBytesInUse }: EtcdMemberDetails): string[] {
  return [id, name, role, url, version, mebibytes(dbBytes), mebibytes(dbBytesInUse)]
}
