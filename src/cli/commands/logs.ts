/** `skiff logs [NAME]`: the logs of Skiff's own processes (L4). */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { type CliCommand, resolveCluster } from '../command.ts'
import { CommandError } from '../exitCodes.ts'

export const logs: CliCommand = {
  name: 'logs',
  register: (program, context) => {
    program
      .command('logs [name]')
      .description('print the logs of the server, the nodes and their containerd')
      .option('--source <name>', 'only this source')
      .option('--tail <lines>', 'only the last lines of each', '200')
      .action(async (name: string | undefined, flags: { source?: string; tail: string }) => {
        if (!/^\d+$/.test(flags.tail)) throw new CommandError('usage', `--tail ${flags.tail}: expected a whole number`)
        const files = await context.clusters.logFiles(await resolveCluster(context, name))
        const chosen = files.filter((one) => flags.source === undefined || one.source === flags.source)
        if (chosen.length === 0)
          throw new CommandError('notFound', `no log of ${flags.source ?? 'this cluster'}`, {
            hint: `there are: ${files.map((one) => one.source).join(', ') || 'none'}`,
          })
        for (const { source, file } of chosen) {
          for (const line of await lastLines(file, Number(flags.tail))) context.stdout.write(chosen.length > 1 ? `${source}: ${line}\n` : `${line}\n`)
        }
      })
  },
}

/** The last lines of a file, read once from the front; no more than they are kept. */
async function lastLines(file: string, count: number): Promise<string[]> {
  const kept: string[] = []
  for await (const line of createInterface({ input: createReadStream(file) })) {
    kept.push(line)
    if (kept.length > count) kept.shift()
  }
  return kept
}
