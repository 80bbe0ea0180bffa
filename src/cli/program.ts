/** All commands on one program (L4). */
import { type Command, Option } from 'commander'
import type { CommandContext } from './command.ts'
import { commands } from './commands/index.ts'
import { CommandError } from './exitCodes.ts'

export function registerCommands(program: Command, context: CommandContext): void {
  for (const command of commands) command.register(program, context)
  for (const command of program.commands) nameCluster(command, context)
}

const clusterFlags: readonly (string | undefined)[] = ['--cluster', '--name']

/** A command that takes its cluster by a flag takes it by --cluster and by --name, one of which its help has. */
function nameCluster(command: Command, context: CommandContext): void {
  for (const child of command.commands) nameCluster(child, context)
  const flag = command.options.find(({ long }) => clusterFlags.includes(long))
  if (!flag || command.commands.length > 0) return
  takeOtherFlag(command, flag.attributeName())
  if (!command.registeredArguments.at(-1)?.variadic) refuseWordTooMany(command, `--${flag.attributeName()}`, context)
}

function takeOtherFlag(command: Command, shown: string): void {
  const other = shown === 'cluster' ? 'name' : 'cluster'
  command.addOption(new Option(`--${other} <name>`).hideHelp()).hook('preAction', (_, acting) => {
    const { [shown]: cluster, [other]: same } = acting.opts()
    if (same === undefined) return
    if (cluster !== undefined && cluster !== same) throw new CommandError('usage', 'give --name or --cluster, not both')
    acting.setOptionValue(shown, same).setOptionValue(other, undefined)
  })
}

/** Other commands take the cluster as a word: here it is refused, with the flag. */
function refuseWordTooMany(command: Command, flag: string, { clusters }: CommandContext): void {
  const most = command.registeredArguments.length
  command.allowExcessArguments().hook('preAction', async (_, { args }) => {
    const excess = args[most]
    if (excess === undefined) return
    const known = await clusters.names()
    const cluster = args.find((word) => known.includes(word)) ?? excess
    throw new CommandError('usage', `"${excess}" is a word too many`, { hint: `name the cluster with ${flag}, as in: ${flag} ${cluster}` })
  })
}
