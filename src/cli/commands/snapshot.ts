/** `skiff snapshot save|status|restore|diff`: the objects of a cluster as one file (L4). Upstream: etcdctl snapshot save, etcdutl snapshot status and restore. */
import { type CliCommand, type CommandContext, checkName, defaultClusterName, progressFor, resolveCluster, several } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { printFound } from '../output.ts'
import type { RestoreOptions, SnapshotDifference, SnapshotStatus } from '../snapshots.ts'
import { table } from './status.ts'

interface Flags {
  cluster?: string
  quiet?: boolean
  output?: string
  bumpRevision?: string
  markCompacted?: boolean
  skipHashCheck?: boolean
}

export const snapshot: CliCommand = {
  name: 'snapshot',
  register: (program, context) => {
    const group = program.command('snapshot').description("save a cluster's objects to a file, and restore them; the file is etcd's")
    group
      .command('save <file>')
      .description('write all objects, with their history, to a file; the cluster may run')
      .option('--cluster <name>', 'the cluster (default: the only one, or skiff)')
      .option('-q, --quiet', 'print nothing but errors')
      .action((file: string, flags: Flags) => save(context, file, flags))
    group
      .command('status <file>')
      .description('check a file and print its hash, revision, number of keys and size')
      .option('-o, --output <format>', 'json')
      .action(async (file: string, { output }: Flags) => {
        const found = await context.snapshots.status(file)
        printFound(context, formatOf(output), found, (one) => table([header, rowOf(one)]))
      })
    group
      .command('diff <file> <other>')
      .description('print the keys that the second file has otherwise than the first one')
      .option('-o, --output <format>', 'json')
      .action(async (file: string, other: string, { output }: Flags) =>
        printFound(context, formatOf(output), await context.snapshots.diff(file, other), describeDifference),
      )
    group
      .command('restore <file> [name]')
      .description('put the objects of a file into a cluster that is stopped, or that is not there yet')
      .option('--bump-revision <n>', 'continue this much above the revision of the file; needs --mark-compacted')
      .option('--mark-compacted', 'let no watch continue from before; needs --bump-revision')
      .option('--skip-hash-check', "take a file without a trailer, such as a copy of etcd's member/snap/db")
      .option('-q, --quiet', 'print nothing but errors')
      .action((file: string, name: string | undefined, flags: Flags) => restore(context, file, name, flags))
  },
}

async function save(context: CommandContext, file: string, { cluster, quiet = false }: Flags): Promise<void> {
  const name = await resolveCluster(context, cluster)
  const progress = progressFor(context, quiet)
  const { bytes } = await progress.step(`Saving cluster "${name}"`, () => context.snapshots.save(name, file, progress))
  progress.note(`Saved to ${file}: ${mebibytes(bytes)}`)
}

async function restore(context: CommandContext, file: string, name: string | undefined, flags: Flags): Promise<void> {
  const options = restoreOptions(flags)
  const cluster = checkName(name ?? (await onlyCluster(context)))
  const progress = progressFor(context, flags.quiet ?? false)
  context.ifInterrupted(`cluster "${cluster}" is as it was; the command can be run again`)
  const { backup, restoredRevision, totalKey } = await progress.step(`Restoring cluster "${cluster}"`, () =>
    context.snapshots.restore(file, cluster, options, progress),
  )
  progress.note(`Cluster "${cluster}" has the ${totalKey} keys of ${file} at revision ${restoredRevision}`)
  if (backup !== undefined) progress.note(`The store that was there is kept: ${backup}`)
  progress.note('The content of volumes is not in a snapshot: a pod whose volume was removed since waits, and its events say so')
  progress.note(`Start the cluster with: skiff up ${cluster}`)
}

/** A restore replaces objects: where there are several clusters, no other sign than the name will do. */
async function onlyCluster(context: CommandContext): Promise<string> {
  const names = await context.clusters.names()
  if (names.length > 1) throw several(names)
  return names[0] ?? defaultClusterName
}

function restoreOptions({ bumpRevision, markCompacted = false, skipHashCheck = false }: Flags): RestoreOptions {
  // etcdutl's words.
  if (markCompacted !== (bumpRevision !== undefined)) throw new CommandError('usage', '--mark-compacted required if --bump-revision, and the other way round')
  const bump = Number(bumpRevision ?? 0)
  if (bumpRevision !== undefined && (!/^\d+$/.test(bumpRevision) || bump === 0 || bump > mostBump))
    throw new CommandError('usage', `--bump-revision ${bumpRevision}: expected a whole number from 1 to ${mostBump}`)
  return { bumpRevision: bump, skipHashCheck }
}

/** Revisions stay exact in JavaScript for a long time after it. */
const mostBump = 2 ** 52

function formatOf(output: string | undefined): 'json' | 'text' {
  if (output === undefined || output === 'json') return output ?? 'text'
  throw new CommandError('usage', `-o ${output}: expected json`)
}

const header = ['HASH', 'REVISION', 'TOTAL KEYS', 'TOTAL SIZE', 'VERSION']
const mebibytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)}Mi`

function rowOf({ hash, revision, totalKey, totalSize, version }: SnapshotStatus): string[] {
  return [hash.toString(16), String(revision), String(totalKey), mebibytes(totalSize), version]
}

function describeDifference({ added, removed, changed }: SnapshotDifference): string {
  const marked = (mark: string, keys: readonly string[]) => keys.map((key) => ({ mark, key }))
  const lines = [...marked('+', added), ...marked('-', removed), ...marked('~', changed)]
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ mark, key }) => `${mark} ${key}\n`)
  return `${lines.join('')}${added.length} added, ${removed.length} removed, ${changed.length} changed\n`
}
