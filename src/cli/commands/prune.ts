/** `skiff prune`: removes what is left on the host of clusters whose directory was removed by other means than `skiff delete` (L4). */
import { type CliCommand, progressFor } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { printFound } from '../output.ts'
import { removeStale } from './delete.ts'

export const prune: CliCommand = {
  name: 'prune',
  register: (program, context) => {
    program
      .command('prune')
      .description('remove the processes, networks, mounts, cgroups and kubeconfig entries of clusters whose directory is gone')
      .option('--dry-run', 'only list what would be removed')
      .option('-q, --quiet', 'print nothing but errors')
      .action(async ({ dryRun = false, quiet = false }: { dryRun?: boolean; quiet?: boolean }) => {
        const { removed: found, left } = await context.clusters.prune(progressFor(context, quiet), dryRun)
        const removed = [...found, ...(await removeStale(context, { dryRun }))]
        if (!quiet || dryRun) {
          printFound(context, 'text', removed, (lines) =>
            lines.length === 0 ? 'There is nothing to remove\n' : `${lines.map((line) => `${dryRun ? 'would remove' : 'removed'} ${line}`).join('\n')}\n`,
          )
        }
        if (left.length > 0) throw new CommandError('internal', 'something is left of clusters that are gone', { details: left })
      })
  },
}
