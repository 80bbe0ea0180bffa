/**
 * `skiff completion SHELL`: a script that completes commands, flags and clusters' names (L4). It is made from the registered commands, so a new command
 * needs nothing here. Clusters' names are asked for at each completion (`skiff ls -q`).
 */
import type { Command } from 'commander'
import type { CliCommand } from '../command.ts'
import { CommandError } from '../exitCodes.ts'

/** A command with its words, such as `certs check`. */
interface Completed {
  readonly words: string
  readonly description: string
  readonly subcommands: readonly { readonly name: string; readonly description: string }[]
  readonly flags: readonly { readonly names: readonly string[]; readonly description: string }[]
  readonly takesCluster: boolean
}

const scripts: Readonly<Record<string, (commands: readonly Completed[]) => string>> = { bash, zsh, fish }

export const completion: CliCommand = {
  name: 'completion',
  register: (program, context) => {
    program
      .command('completion <shell>')
      .description(`print a completion script for ${Object.keys(scripts).join(', ')}; source it, as in: source <(skiff completion bash)`)
      .action((shell: string) => {
        const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined
        if (!script) throw new CommandError('usage', `${shell}: expected ${Object.keys(scripts).join(', ')}`)
        context.stdout.write(script(completedCommands(program, '')))
      })
  },
}

function completedCommands(command: Command, words: string): Completed[] {
  const flags = command.createHelp().visibleOptions(command)
  const subcommands = command.commands.map((child) => ({ name: child.name(), description: child.description() }))
  const own: Completed = {
    words,
    description: command.description(),
    subcommands,
    flags: flags.map((option) => ({ names: [option.long, option.short].filter((name) => name !== undefined), description: option.description })),
    takesCluster: command.registeredArguments.some((argument) => argument.name() === 'name') || flags.some((option) => option.long === '--name'),
  }
  return [own, ...command.commands.flatMap((child) => completedCommands(child, `${words} ${child.name()}`.trim()))]
}

const listClusters = 'skiff ls -q 2>/dev/null'
/** Within single quotes of a shell. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

function bash(commands: readonly Completed[]): string {
  const cases = commands.map(({ words, subcommands, flags, takesCluster }) => {
    const candidates = [...subcommands.map(({ name }) => name), ...flags.flatMap(({ names }) => names)].join(' ')
    return `    ${quoted(words)}) candidates=${quoted(candidates)}${takesCluster ? ` clusters="$(${listClusters})"` : ''} ;;`
  })
  return `# bash completion for skiff
_skiff() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words='' word candidates='' clusters=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case " ${commands.map(({ words }) => words).join(' | ')} " in
      *" \${words:+$words }$word "*) words="\${words:+$words }$word" ;;
    esac
  done
  case "$words" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$candidates $clusters" -- "$current"))
}
complete -o default -F _skiff skiff
`
}

function zsh(commands: readonly Completed[]): string {
  const described = (name: string, description: string) => quoted(`${name.replaceAll(':', '\\:')}:${description}`)
  const cases = commands.map(({ words, subcommands, flags, takesCluster }) => {
    const candidates = [
      ...subcommands.map(({ name, description }) => described(name, description)),
      ...flags.flatMap(({ names, description }) => names.map((name) => described(name, description))),
    ]
    return `    ${quoted(words)})\n      candidates=(${candidates.join(' ')})${takesCluster ? `\n      clusters=(\${(f)"$(${listClusters})"})` : ''}\n      ;;`
  })
  return `#compdef skiff
_skiff() {
  local words_so_far='' word
  local -a candidates clusters
  for word in "\${words[@]:1:$((CURRENT - 2))}"; do
    case " ${commands.map(({ words }) => words).join(' | ')} " in
      *" \${words_so_far:+$words_so_far }$word "*) words_so_far="\${words_so_far:+$words_so_far }$word" ;;
    esac
  done
  case "$words_so_far" in
${cases.join('\n')}
  esac
  _describe 'skiff' candidates
  (( \${#clusters} )) && compadd -a clusters
  return 0
}
compdef _skiff skiff
`
}

function fish(commands: readonly Completed[]): string {
  const lines = commands.flatMap(({ words, subcommands, flags, takesCluster }) => {
    const seen = words.split(' ').filter(Boolean)
    const conditions = [
      ...seen.map((word) => `__fish_seen_subcommand_from ${word}`),
      ...(subcommands.length > 0 ? [`not __fish_seen_subcommand_from ${subcommands.map(({ name }) => name).join(' ')}`] : []),
    ]
    const when = conditions.length > 0 ? ` -n ${quoted(conditions.join('; and '))}` : ''
    return [
      ...subcommands.map(({ name, description }) => `complete -c skiff -f${when} -a ${name} -d ${quoted(description)}`),
      ...flags.map(({ names, description }) => {
        const forms = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`)).join(' ')
        return `complete -c skiff${when} ${forms} -d ${quoted(description)}`
      }),
      ...(takesCluster ? [`complete -c skiff -f${when} -a '(${listClusters})' -d cluster`] : []),
    ]
  })
  return `# fish completion for skiff\n${lines.join('\n')}\n`
}
