/**
 * The file of `skiff up --config` (L4): YAML whose keys are the flags of `up` without their dashes, and `name`; or a file of kubeadm. A flag that is given on the
 * command line wins over the file. docs/command-line.md describes it.
 */
import type { Command } from 'commander'
import { parseYamlDocuments } from '#api/machinery/yaml'
import { messageOf } from '#base/messageOf'
import type { CommandContext } from './command.ts'
import { CommandError } from './exitCodes.ts'
import { isKubeadmFile, readConfigText, withWarnings } from './kubeadm/configFile.ts'

/** What a file of kubeadm needs. */
type ConfigContext = Pick<CommandContext, 'componentFlags' | 'stderr'>

/** Sets the file's values on `command`. @returns the cluster's name, if the file has one. @throws CommandError for a file that cannot be used */
export async function applyConfigFile(command: Command, file: string, context: ConfigContext): Promise<string | undefined> {
  const values = await readConfig(file, context)
  const options = new Map(command.options.filter((option) => option.long && option.long !== '--config').map((option) => [keyOf(option.long ?? ''), option]))
  const keys = [...new Set(['name', ...options.keys()])]
  for (const [key, value] of Object.entries(values)) {
    if (key === 'name') continue
    const option = options.get(key)
    if (!option) throw new CommandError('usage', `${file}: unknown key "${key}"; the keys are ${keys.join(', ')}`)
    const attribute = option.attributeName()
    if (command.getOptionValueSource(attribute) === 'cli') continue
    command.setOptionValueWithSource(attribute, parsed(file, key, value, option.isBoolean(), option.parseArg !== undefined), 'config')
  }
  const { name } = values
  if (name !== undefined && typeof name !== 'string') throw new CommandError('usage', `${file}: name: expected a text`)
  return name
}

const keyOf = (long: string) => long.replace(/^--(no-)?/, '')

async function readConfig(file: string, context: ConfigContext): Promise<Readonly<Record<string, unknown>>> {
  const documents = documentsOf(file, await readConfigText(file))
  if (isKubeadmFile(documents)) {
    // Loaded by those that have such a file.
    const { kubeadmUpValues } = await import('./kubeadm/upFlags.ts')
    const known = await context.componentFlags()
    return withWarnings(file, context, (report) => kubeadmUpValues(documents, known, report))
  }
  const values = documents[0] ?? {}
  if (typeof values === 'object' && !Array.isArray(values)) return values as Record<string, unknown>
  throw new CommandError('usage', `${file}: expected a map of flags, such as "nodes: 2"`)
}

function documentsOf(file: string, text: string): readonly unknown[] {
  try {
    return parseYamlDocuments(text)
  } catch (error) {
    throw new CommandError('usage', `${file}: ${messageOf(error)}`)
  }
}

/** As the command line would give it: texts, a list of texts for a flag that may be repeated, and a boolean for a switch. `kubeconfig` takes both. */
function parsed(file: string, key: string, value: unknown, isSwitch: boolean, isRepeated: boolean): unknown {
  const expected = (what: string) => new CommandError('usage', `${file}: ${key}: expected ${what}`)
  if (key === 'kubeconfig' && value === false) return false
  if (isSwitch && key !== 'kubeconfig') {
    if (typeof value === 'boolean') return value
    throw expected('true or false')
  }
  if (isRepeated) {
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value
    throw expected('a list of texts, such as [audit-log-path=/var/log/audit.log]')
  }
  if (typeof value === 'string' || typeof value === 'number') return String(value)
  throw expected('a text or a number')
}
