/** `skiff image load|ls`: images from docker-archive or OCI tar files into the nodes; no registry (L4). */
import fs from 'node:fs/promises'
import { type CliCommand, progressFor, resolveCluster } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { printFound } from '../output.ts'
import { table } from './status.ts'

export const image: CliCommand = {
  name: 'image',
  register: (program, context) => {
    const group = program.command('image').description('images on the nodes')
    group
      .command('load <files...>')
      .description('load docker-archive or OCI tar files into every real node')
      .option('--name <cluster>', 'the cluster; default: the only one')
      .option('-q, --quiet', 'print nothing but errors')
      .action(async (files: string[], flags: { name?: string; quiet?: boolean }) => {
        const cluster = await resolveCluster(context, flags.name)
        for (const file of files) await checkFile(file)
        const loaded = await context.clusters.loadImages(cluster, files, progressFor(context, flags.quiet ?? false))
        printFound(context, 'text', loaded, (all) =>
          all.flatMap(({ names, node }) => names.map((name) => `${name} is on ${node} of cluster "${cluster}"\n`)).join(''),
        )
      })
    group
      .command('ls')
      .description('list the images on the nodes')
      .option('--name <cluster>', 'the cluster; default: the only one')
      .action(async (flags: { name?: string }) => {
        const found = await context.clusters.images(await resolveCluster(context, flags.name))
        const rows = found.map((one) => [one.node, one.name, `${(one.bytes / 1e6).toFixed(1)}MB`])
        printFound(context, 'text', [['NODE', 'IMAGE', 'SIZE'], ...rows], table)
      })
  },
}

async function checkFile(file: string): Promise<void> {
  const stat = await fs.stat(file).catch(() => undefined)
  if (!stat?.isFile()) throw new CommandError('notFound', `${file} is no file`, { hint: 'docker save IMAGE -o FILE makes one' })
}
