/**
 * Reads the flags of a component by groups, each with its own settings and checks, and writes the text of --help (L5). Knows no group: every component
 * loads only its own.
 */
import { emptyMap } from '#base/bareMap'
import { type Flags, type FlagValues, givenFlags, parseFlags, UsageError } from './flags.ts'
import type { OptionContext, OptionGroup } from './optionGroup.ts'

type SettingsOf<G> = G extends OptionGroup<infer _F, infer S> ? S : never
export type OptionsOf<Groups> = { readonly [name in keyof Groups]: SettingsOf<Groups[name]> } & {
  /** Every flag's value, by name, as /flagz shows it. */
  readonly flags: Readonly<Record<string, string>>
}

/** @throws UsageError with every fault of the first stage that finds one: notation first, then what the groups check */
export async function readOptions<Groups extends object>(from: Groups, args: readonly string[], context: OptionContext): Promise<OptionsOf<Groups>> {
  const groups = Object.entries(from) as [string, OptionGroup<Flags, unknown>][]
  const flags: Flags = Object.assign({}, ...groups.map(([, group]) => group.flags))
  const values: FlagValues<Flags> = parseFlags(flags, args)
  const given = givenFlags(flags, args)
  const faults: string[] = []
  const settings: Record<string, unknown> = emptyMap()
  for (const [name, group] of groups) {
    try {
      settings[name] = await group.settings(values, { ...context, isGiven: (flag) => given.has(flag) })
    } catch (error) {
      if (!(error instanceof UsageError)) throw error
      faults.push(...error.faults)
    }
  }
  if (faults.length > 0) throw new UsageError(faults)
  const shown = Object.entries(flags).map(([name, flag]) => [name, flag.format(values[name])])
  return { ...settings, flags: Object.fromEntries(shown) } as OptionsOf<Groups>
}

/** The text of --help: every group under its heading, every flag with its type and default. */
export function usage(from: Readonly<Record<string, OptionGroup<Flags, unknown>>>): string {
  const groups = Object.values(from).map(({ name, flags }) => {
    const rows = Object.entries(flags).map(([flag, { type, usage: text, default: value, format }]) => {
      const shown = format(value)
      return `      --${flag}${type === 'bool' ? '' : ` ${type}`}\n                ${text}${shown === '' || shown === '[]' || shown === 'false' ? '' : ` (default ${shown})`}`
    })
    return `${name} flags:\n\n${rows.join('\n')}\n`
  })
  return groups.join('\n')
}
