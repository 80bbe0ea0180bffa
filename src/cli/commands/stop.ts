/** `skiff stop [NAME]`: ends Skiff's processes of a cluster; its containers run on (L4). */
import { type CliCommand, progressFor, resolveCluster } from '../command.ts'

export const stop: CliCommand = {
  name: 'stop',
  register: (program, context) => {
    program
      .command('stop [name]')
      .description('stop the control plane and the agents; containers run on until delete')
      .option('-q, --quiet', 'print nothing but errors')
      .action(async (name: string | undefined, flags: { quiet?: boolean }) => {
        const cluster = await resolveCluster(context, name)
        const progress = progressFor(context, flags.quiet ?? false)
        await context.clusters.stop(cluster, progress)
        progress.note(`Cluster "${cluster}" is stopped; start it again with: skiff start ${cluster}`)
      })
  },
}
