/** The page of the commands: what `skiff COMMAND --help` prints, of all commands. The texts stand in src/cli/commands. */
import { Command } from 'commander'
import { registerCommands } from '../../src/cli/program.ts'
import { asCell, asText, codeCell, generated, tableOf } from './markdownText.mjs'

/** A command with more flags than this is referred to by another one that has the same. */
const manyFlags = 10

export function commandsPage() {
  const program = new Command('skiff').enablePositionalOptions()
  // Commands use their context only when they run.
  registerCommands(program, {})
  const all = program.commands.flatMap((command) => withSubcommands(command, 'skiff'))
  const parts = all.map((one) => sectionOf(one, all))
  return `# Commands and flags

${generated} [The command line](../command-line.md) says how a command finds its cluster, which pages describe it, and which files, ports and exit
codes there are.

${parts.join('\n\n')}
`
}

function withSubcommands(command, before) {
  const words = `${before} ${command.name()}`
  const own = { words, command, flags: flagsOf(command) }
  return [own, ...command.commands.flatMap((child) => withSubcommands(child, words))]
}

function flagsOf(command) {
  return command
    .createHelp()
    .visibleOptions(command)
    .filter(({ long }) => long !== '--help')
    .map(({ flags, description, defaultValue }) => {
      const byDefault =
        defaultValue === undefined || typeof defaultValue === 'boolean' || description.includes('(default:') ? '' : ` (default: ${defaultValue})`
      return { flags, text: `${description}${byDefault}` }
    })
}

function sectionOf({ words, command, flags }, all) {
  const names = command.registeredArguments.map((argument) => argumentText(argument.required, argument.variadic, argument.name()))
  const usage = [words, ...(command.commands.length > 0 ? ['COMMAND'] : []), ...(flags.length > 0 ? ['[flags]'] : []), ...names].join(' ')
  const aliases = command.aliases()
  const lines = [
    `## ${words}`,
    `${sentence(asText(command.description()))}${aliases.length > 0 ? ` Also: \`${aliases.join('`, `')}\`.` : ''}`,
    `\`\`\`text\n${usage}\n\`\`\``,
  ]
  return [...lines, ...flagLines(words, flags, all)].join('\n\n')
}

function argumentText(isRequired, isVariadic, name) {
  const text = `${name}${isVariadic ? '...' : ''}`
  return isRequired ? `<${text}>` : `[${text}]`
}

function sentence(text) {
  const upper = `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
  return /[.:)]$/.test(upper) ? upper : `${upper}.`
}

/** A table, or the name of an earlier command that has the same flags, with those that are missing here. */
function flagLines(words, flags, all) {
  if (flags.length === 0) return []
  const earlier = all.slice(
    0,
    all.findIndex((other) => other.words === words),
  )
  const has = (other, one) => other.flags.some((flag) => flag.flags === one.flags && flag.text === one.text)
  const same = flags.length <= manyFlags ? undefined : earlier.find((other) => flags.every((one) => has(other, one)))
  if (same === undefined)
    return [
      tableOf(
        ['flag', ''],
        flags.map((one) => [codeCell(one.flags), asCell(one.text)]),
      ),
    ]
  const missing = same.flags.filter((one) => !has({ flags }, one)).map((one) => `\`${one.flags}\``)
  return [`The flags of [${same.words}](#${same.words.replaceAll(' ', '-')})${missing.length > 0 ? ` but ${missing.join(', ')}` : ''}.`]
}
