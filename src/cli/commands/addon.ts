/** `skiff addon enable|disable|ls`: parts of a local cluster that are off unless asked for (L4). */
import { type Addon, addonNames } from '../clusterManager.ts'
import { type CliCommand, type CommandContext, progressFor, resolveCluster } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { printFound } from '../output.ts'
import { table } from './status.ts'

interface Flags {
  readonly cluster?: string
  readonly quiet?: boolean
  readonly output?: string
}

export const addon: CliCommand = {
  name: 'addon',
  register: (program, context) => {
    const addons = program.command('addon').description(`parts of a cluster that are off unless asked for: ${addonNames.join(', ')}`)
    for (const [verb, enabled] of [
      ['enable', true],
      ['disable', false],
    ] as const) {
      addons
        .command(`${verb} <addon>`)
        .description(enabled ? 'turn it on, and wait until it serves' : 'turn it off, and remove what it made in the cluster')
        .option('--cluster <name>', 'the cluster (default: the only one, or skiff)')
        .option('-q, --quiet', 'print nothing but errors')
        .action(async (name: string, flags: Flags) => set(context, checkAddon(name), enabled, flags))
    }
    addons
      .command('ls')
      .description('list them')
      .option('--cluster <name>', 'the cluster (default: the only one, or skiff)')
      .option('-o, --output <format>', 'json')
      .action(async ({ cluster, output }: Flags) => {
        const found = await context.clusters.addons(await resolveCluster(context, cluster))
        printFound(context, output === 'json' ? 'json' : 'text', found, (all) =>
          table([['ADDON', 'ENABLED'], ...all.map((one) => [one.addon, one.enabled ? 'yes' : 'no'])]),
        )
      })
  },
}

function checkAddon(name: string): Addon {
  const found = addonNames.find((known) => known === name)
  if (!found) throw new CommandError('usage', `there is no addon "${name}"; there are: ${addonNames.join(', ')}`)
  return found
}

async function set(context: CommandContext, name: Addon, enabled: boolean, { cluster: named, quiet = false }: Flags): Promise<void> {
  const cluster = await resolveCluster(context, named)
  const progress = progressFor(context, quiet)
  const changed = await context.clusters.setAddon(cluster, name, enabled, progress)
  const state = enabled ? 'enabled' : 'disabled'
  progress.note(changed ? `Addon ${name} of cluster "${cluster}" is ${state}` : `Addon ${name} of cluster "${cluster}" was ${state} already`)
}
