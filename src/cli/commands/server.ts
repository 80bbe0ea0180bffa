/** `skiff server install|uninstall [NAME]`: a cluster as a service of systemd (L4). `skiff server run`, which the service runs, is started by the entry. */
import { type CliCommand, type CommandContext, progressFor, resolveCluster } from '../command.ts'

interface Flags {
  dryRun?: boolean
  quiet?: boolean
}

export const server: CliCommand = {
  name: 'server',
  register: (program, context) => {
    const group = program
      .command('server')
      .description('run a cluster as a service of systemd')
      .addHelpText('after', '\nskiff server run NAME starts a cluster and stays in the foreground, as the service does; SIGTERM stops the cluster.')
    group
      .command('install [name]')
      .description('write and start a unit that runs the cluster, from each boot on')
      .option('--dry-run', 'print the unit, change nothing')
      .option('-q, --quiet', 'print nothing but errors')
      .action((name: string | undefined, flags: Flags) => install(context, name, flags))
    group
      .command('uninstall [name]')
      .description('stop the cluster and remove its unit; its data stay')
      .option('-q, --quiet', 'print nothing but errors')
      .action((name: string | undefined, flags: Flags) => uninstall(context, name, flags))
  },
}

async function install(context: CommandContext, name: string | undefined, { dryRun, quiet = false }: Flags): Promise<void> {
  const cluster = await resolveCluster(context, name)
  if (dryRun) return context.stdout.write(await context.clusters.unit(cluster))
  const unit = await context.clusters.installUnit(cluster)
  progressFor(context, quiet).note(`${unit} runs cluster "${cluster}": systemctl status ${unit}`)
}

async function uninstall(context: CommandContext, name: string | undefined, { quiet = false }: Flags): Promise<void> {
  const cluster = await resolveCluster(context, name)
  const progress = progressFor(context, quiet)
  const removed = await context.clusters.removeUnit(cluster)
  progress.note(removed ? `Cluster "${cluster}" is stopped, and its unit is removed` : `Cluster "${cluster}" has no unit`)
}
