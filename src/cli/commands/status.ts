/** `skiff status [NAME]` and `skiff ls`: what runs, in words or as JSON (L4). */
import { greatest } from '#base/extremes'
import { messageOf } from '#base/messageOf'
import { printable } from '#base/printable'
import { formatTime } from '#base/time'
import type { ClusterStatus, EtcdMemberHealth, ServerStatus } from '../clusterManager.ts'
import { type CliCommand, type CommandContext, resolveCluster } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { printFound } from '../output.ts'
import { type ShownStatus, withoutSimulatedNodes, withSimulatedNodes } from '../shownStatus.ts'

export const status: CliCommand = {
  name: 'status',
  register: (program, context) => {
    program
      .command('status [name]')
      .description('show the state of a cluster: server, nodes, processes')
      .option('-o, --output <format>', 'json')
      .option('--nodes', 'list simulated nodes, too, which are only counted otherwise')
      .action(async (name: string | undefined, flags: { output?: string; nodes?: boolean }) => {
        const found = await context.clusters.status(await resolveCluster(context, name))
        printFound(context, formatOf(flags.output), flags.nodes ? withSimulatedNodes(found) : withoutSimulatedNodes(found), describe)
      })
  },
}

export const ls: CliCommand = {
  name: 'ls',
  register: (program, context) => {
    program
      .command('ls')
      .description('list the clusters')
      .option('-o, --output <format>', 'json')
      .option('-q, --quiet', 'print the names only')
      .action(async (flags: { output?: string; quiet?: boolean }) => {
        const names = await context.clusters.names()
        if (flags.quiet) return context.stdout.write(names.map((name) => `${name}\n`).join(''))
        const found = await Promise.all(names.map((name) => statusOrFault(context, name)))
        const all = found.filter((one) => one !== undefined).map(withoutSimulatedNodes)
        printFound(context, formatOf(flags.output), all, (found) => table([['NAME', 'STATE', 'NODES', 'SERVER'], ...found.map(clusterRow)]))
      })
  },
}

const clusterRow = (one: ShownStatus) => [one.name, stateOf(one), String(one.nodes.length + one.simulatedNodes.count), one.server]

/** The fault of one cluster, such as a damaged description, does not hide the others. */
async function statusOrFault({ clusters, stderr }: CommandContext, name: string): Promise<ClusterStatus | undefined> {
  try {
    return await clusters.status(name)
  } catch (error) {
    stderr.write(`error: cluster "${name}": ${printable(messageOf(error))}\n`)
    return undefined
  }
}

function formatOf(output: string | undefined): 'json' | 'text' {
  if (output !== undefined && output !== 'json') throw new CommandError('usage', `-o ${output}: expected json`)
  return output ?? 'text'
}

function stateOf(one: ClusterStatus): string {
  if (one.restored) return 'Restored'
  return one.ready ? 'Ready' : one.running ? 'NotReady' : 'Stopped'
}

function describe(found: ShownStatus): string {
  if (found.restored) return `name:      ${found.name}\nstate:     Restored, and never started: skiff up ${found.name}\ndirectory: ${found.directory}\n`
  const nodes = found.nodes.map((node) => [node.name, node.ready ? 'Ready' : 'NotReady', node.runtime, node.address])
  const processes = found.pids.map((one) => [one.role, String(one.pid), one.node ?? ''])
  return [
    `name:      ${found.name}\nstate:     ${stateOf(found)}\nserver:    ${found.server}\ndirectory: ${found.directory}\n${historyLine(found)}${backupLines(found)}`,
    ...(found.freeBytes < shortOfSpaceBytes ? [shortOfSpace(found)] : []),
    ...(found.running && !found.supervised
      ? [`The supervisor does not run: nothing starts the server again when it ends. Bring it back with: skiff start ${found.name}\n`]
      : []),
    ...(found.servers.length > 0 ? [table([['SERVER', 'STATE', 'URL', 'LEADS'], ...found.servers.map(serverRow)])] : []),
    ...(nodes.length > 0 ? [table([['NODE', 'STATE', 'RUNTIME', 'ADDRESS'], ...nodes])] : []),
    ...(isCounted(found) ? [simulatedLine(found)] : []),
    ...(found.etcd.length > 0 ? [table([['ETCD', 'STATE', 'URL'], ...found.etcd.map(memberRow)])] : []),
    table([['PROCESS', 'PID', 'NODE'], ...processes]),
    ...(found.restarts.length > 0 ? [restartTable(found)] : []),
  ].join('\n')
}

/** Simulated nodes are there, and not listed. */
const isCounted = ({ nodes, simulatedNodes }: ShownStatus) => simulatedNodes.count > 0 && nodes.every(({ runtime }) => runtime !== 'simulated')

function simulatedLine({ name, simulatedNodes: { count, ready } }: ShownStatus): string {
  return `${ready} of ${count} simulated nodes are Ready. To list them: skiff nodes ls ${name}\n`
}

/** The embedded store wants a little less for its largest writes. */
const shortOfSpaceBytes = 16 * 2 ** 20

function shortOfSpace({ directory, freeBytes }: ClusterStatus): string {
  const state = freeBytes < fullBytes ? 'is full' : 'is nearly full'
  return `The disk of ${directory} ${state}: ${formatMebibytes(freeBytes)} are free. The server refuses writes that have no room there, and a stopped one may not start. Make room on that disk.\n`
}

/** What the embedded store leaves to other files. */
const fullBytes = 2 * 2 ** 20

const serverRow = ({ name, running, ready, url, leads }: ServerStatus) => [name, ready ? 'Ready' : running ? 'NotReady' : 'Stopped', url, leads.join(', ')]

function historyLine({ history }: ClusterStatus): string {
  return history ? `history:   since ${formatTime(history.sinceMs)}, ${formatMebibytes(history.bytes)}\n` : ''
}

function backupLines({ backups }: ClusterStatus): string {
  if (!backups) return ''
  const { schedule, place, last, failure, nextMs } = backups
  const newest = last ? `newest ${last.name}, ${formatMebibytes(last.bytes)}` : 'none yet'
  const next = nextMs === undefined ? '' : `, next ${formatTime(nextMs)}`
  const line = `backups:   "${schedule}" to ${place}, ${newest}${next}\n`
  return failure ? `${line}The backup of ${formatTime(failure.atMs)} failed: ${printable(failure.reason)}\n` : line
}

const formatMebibytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(bytes < 10 * 2 ** 20 ? 1 : 0)} MiB`

const memberRow = ({ name, healthy, url }: EtcdMemberHealth) => [name, healthy ? 'Healthy' : 'Unhealthy', url]

function restartTable({ restarts, directory }: ClusterStatus): string {
  const rows = restarts.map(({ what, count, lastMs, ending }) => [what, String(count), formatTime(lastMs), ending])
  return `${table([['RESTARTED', 'TIMES', 'LAST', 'ENDED BY'], ...rows])}${directory}/crashes.log has the last lines of the logs.\n`
}

/** Columns as wide as their widest cell, three spaces apart, as kubectl prints. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => greatest(rows.map((row) => (row[column] ?? '').length)))
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd((widths[column] ?? 0) + 3)))
          .join('')
          .trimEnd()}\n`,
    )
    .join('')
}
