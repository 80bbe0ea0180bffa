/** `skiff delete [NAME]`: removes every trace of a cluster. Deleting what is not there is fine, so that clean-up scripts are safe (L4). */
import { type CliCommand, type CommandContext, checkName, defaultClusterName, progressFor } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { contextName, goneContexts, kubeconfigPath, removeFromKubeconfig } from '../kubeconfigFile.ts'
import { printFound } from '../output.ts'

interface DeleteFlags {
  all?: boolean
  dryRun?: boolean
  kubeconfig?: string
  quiet?: boolean
}

export const deleteCluster: CliCommand = {
  name: 'delete',
  register: (program, context) => {
    program
      .command('delete [name]')
      .description('delete a cluster: processes, containers, networks, mounts, files and kubeconfig entry')
      .option('--all', 'every cluster')
      .option('--dry-run', 'only list what would be removed')
      .option('--kubeconfig <file>', 'a kubeconfig to remove the entry from, in addition to those that "up" wrote')
      .option('-q, --quiet', 'print nothing but errors')
      .action(async (name: string | undefined, flags: DeleteFlags) => {
        if (flags.all && name !== undefined) throw new CommandError('usage', `delete ${name} --all: expected a name or --all, not both`)
        const names = flags.all ? await context.clusters.names() : [name === undefined ? await unnamed(context) : checkName(name)]
        const left: string[] = []
        for (const cluster of names) left.push(...(await deleteOne(context, cluster, flags)).map((line) => `cluster "${cluster}": ${line}`))
        if (left.length > 0) throw new CommandError('internal', 'some parts could not be removed', { details: left })
      })
  },
}

/** The default cluster. A missing one is fine, but not when the name was forgotten and other clusters exist. */
async function unnamed(context: CommandContext): Promise<string> {
  const names = await context.clusters.names()
  if (names.length === 0 || names.includes(defaultClusterName)) return defaultClusterName
  throw new CommandError('usage', `there is no cluster "${defaultClusterName}"; the clusters are ${names.join(', ')}`, {
    hint: 'name one of them, as in: skiff delete NAME; or --all',
  })
}

/** @returns what may be left, one line each */
async function deleteOne(context: CommandContext, name: string, flags: DeleteFlags): Promise<readonly string[]> {
  const progress = progressFor(context, flags.quiet ?? false)
  if (!(await context.clusters.exists(name))) {
    const stale = await removeStale(context, flags, (entry) => entry === contextName(name))
    progress.note(
      `There is no cluster "${name}": ${stale.length === 0 ? 'nothing to delete' : `${flags.dryRun ? 'would remove' : 'removed'} its ${stale.join()}`}`,
    )
    return []
  }
  const places = await context.clusters.kubeconfigs(name)
  const { removed, left } = await context.clusters.delete(name, progress, flags.dryRun ?? false)
  if (flags.dryRun) {
    printFound(context, 'text', removed, (lines) => `${lines.map((line) => `would remove ${line}`).join('\n')}\n`)
    return []
  }
  const file = await kubeconfigPath({ flag: flags.kubeconfig, variable: context.env.KUBECONFIG, home: context.home })
  const known = places.some((place) => place.file === file)
  for (const place of known ? places : [...places, { file, previousContext: '' }]) {
    await removeFromKubeconfig(place.file, contextName(name), place.previousContext, context.clock)
  }
  progress.note(`Cluster "${name}" is deleted`)
  return left
}

/** Removes the contexts of deleted clusters from the kubeconfig; with `dryRun` only lists them. @returns one line each */
export async function removeStale(
  { clusters, clock, env, home }: CommandContext,
  { kubeconfig, dryRun = false }: Pick<DeleteFlags, 'kubeconfig' | 'dryRun'>,
  isMeant: (context: string) => boolean = () => true,
): Promise<string[]> {
  const file = await kubeconfigPath({ flag: kubeconfig, variable: env.KUBECONFIG, home })
  const stale = (await goneContexts(file, clusters.isGone)).filter(isMeant)
  if (!dryRun) for (const context of stale) await removeFromKubeconfig(file, context, '', clock)
  return stale.map((context) => `context ${context} of ${file}`)
}
