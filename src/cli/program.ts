/** All commands on one program (L4). */
import type { Command } from 'commander'
import type { CommandContext } from './command.ts'
import { commands } from './commands/index.ts'
import { CommandError } from './exitCodes.ts'

export function registerCommands(program: Command, context: CommandContext): void {
  for (const command of commands) command.register(program, context)
  for (const command of program.commands) nameClusterFlag(command)
}

/** Other commands take the cluster as a word: where a flag names it, a word too many is refused with it. */
function nameClusterFlag(command: Command): void {
  for (const child of command.commands) nameClusterFlag(child)
  const flag = command.options.find(({ long }) => long === '--cluster' || long === '--name')?.long
  const words = command.registeredArguments
  if (flag === undefined || words.at(-1)?.variadic || command.commands.length > 0) return
  command.allowExcessArguments().hook('preAction', (_, { args }) => {
    const [excess] = args.slice(words.length)
    if (excess !== undefined)
      throw new CommandError('usage', `"${excess}" is a word too many`, { hint: `name the cluster with ${flag}, as in: ${flag} ${excess}` })
  })
}
