/** `skiff logs [NAME]`: the logs of Skiff's own processes (L4). */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { printable } from '#base/printable'
import { type CliCommand, resolveCluster } from '../command.ts'
import { CommandError } from '../exitCodes.ts'
import { followLogs, type LogFiles } from '../logTail.ts'

export const logs: CliCommand = {
  name: 'logs',
  register: (program, context) => {
    program
      .command('logs [name]')
      .description('print the logs of the server, the nodes and their containerd')
      .option('--source <name>', 'only this source')
      .option('--tail <lines>', 'only the last lines of each', '200')
      .option('-f, --follow', 'continue with the lines that are added, until interrupted or the cluster is deleted')
      .action(async (name: string | undefined, flags: { source?: string; tail: string; follow?: boolean }) => {
        if (!/^\d+$/.test(flags.tail)) throw new CommandError('usage', `--tail ${flags.tail}: expected a whole number`)
        const cluster = await resolveCluster(context, name)
        const files = await context.clusters.logFiles(cluster)
        const choose = (all: readonly LogFiles[]) => all.filter((one) => flags.source === undefined || one.source === flags.source)
        const chosen = choose(files)
        if (chosen.length === 0)
          throw new CommandError('notFound', `no log of ${flags.source ?? 'this cluster'}`, {
            hint: `there are: ${files.map((one) => one.source).join(', ') || 'none'}`,
          })
        const write = (source: string, line: string) => context.stdout.write(`${printable(chosen.length > 1 ? `${source}: ${line}` : line)}\n`)
        if (flags.follow) {
          const logs = async () => ((await context.clusters.exists(cluster)) ? choose(await context.clusters.logFiles(cluster)) : undefined)
          await followLogs({ clock: context.clock, tail: Number(flags.tail), logs, write })
          return
        }
        for (const { source, files: parts } of chosen) for (const line of await lastLines(parts, Number(flags.tail))) write(source, line)
      })
  },
}

/** The last lines of a log, no more than are asked for; `files`: the newest first. Each is read once from the front. */
export async function lastLines(files: readonly string[], count: number): Promise<string[]> {
  let kept: string[] = []
  for (const file of files) {
    const room = count - kept.length
    if (room <= 0) break
    kept = [...(await tail(file, room)), ...kept]
  }
  return kept
}

async function tail(file: string, count: number): Promise<string[]> {
  const kept: string[] = []
  for await (const line of createInterface({ input: createReadStream(file) })) {
    kept.push(line)
    if (kept.length > count) kept.shift()
  }
  return kept
}
