/** `skiff status [NAME]` and `skiff ls`: what runs, in words or as JSON (L4). */
import { greatest } from '#base/extremes'
import type { ClusterStatus } from '../clusterManager.ts'
import { type CliCommand, resolveCluster } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { printFound } from '../output.ts'

export const status: CliCommand = {
  name: 'status',
  register: (program, context) => {
    program
      .command('status [name]')
      .description('show the state of a cluster: server, nodes, processes')
      .option('-o, --output <format>', 'json')
      .action(async (name: string | undefined, flags: { output?: string }) => {
        const found = await context.clusters.status(await resolveCluster(context, name))
        printFound(context, formatOf(flags.output), found, describe)
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
        const all = await Promise.all(names.map((name) => context.clusters.status(name)))
        printFound(context, formatOf(flags.output), all, (found) =>
          table([['NAME', 'STATE', 'NODES', 'SERVER'], ...found.map((one) => [one.name, stateOf(one), String(one.nodes.length), one.server])]),
        )
      })
  },
}

function formatOf(output: string | undefined): 'json' | 'text' {
  if (output !== undefined && output !== 'json') throw new CommandError('usage', `-o ${output}: expected json`)
  return output ?? 'text'
}

function stateOf(one: ClusterStatus): string {
  return one.ready ? 'Ready' : one.running ? 'NotReady' : 'Stopped'
}

function describe(found: ClusterStatus): string {
  const nodes = found.nodes.map((node) => [node.name, node.ready ? 'Ready' : 'NotReady', node.runtime, node.address])
  const processes = found.pids.map((one) => [one.role, String(one.pid), one.node ?? ''])
  return [
    `name:      ${found.name}\nstate:     ${stateOf(found)}\nserver:    ${found.server}\ndirectory: ${found.directory}\n`,
    table([['NODE', 'STATE', 'RUNTIME', 'ADDRESS'], ...nodes]),
    table([['PROCESS', 'PID', 'NODE'], ...processes]),
  ].join('\n')
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
