/** kube-apiserver's flags by group, in the order that --help shows (L5), and the settings they come to. */
import { authentication } from './authentication.ts'
import { features } from './features.ts'
import type { Flags, FlagValues } from './flags.ts'
import { parseFlags, UsageError } from './flags.ts'
import { generic } from './generic.ts'
import type { OptionContext, OptionGroup } from './optionGroup.ts'

export const optionGroups = { generic, features, authentication } as const

type Groups = typeof optionGroups
type SettingsOf<G> = G extends OptionGroup<infer _F, infer S> ? S : never
export type ServerOptions = { readonly [name in keyof Groups]: SettingsOf<Groups[name]> } & {
  /** Every flag's value, by name, as /flagz shows it. */
  readonly flags: Readonly<Record<string, string>>
}

/** @throws UsageError with every fault of the first stage that finds one: notation first, then what the groups check */
export async function serverOptions(args: readonly string[], context: OptionContext): Promise<ServerOptions> {
  const groups = Object.entries(optionGroups) as [keyof Groups, OptionGroup<Flags, unknown>][]
  const flags: Flags = Object.assign({}, ...groups.map(([, group]) => group.flags))
  const values: FlagValues<Flags> = parseFlags(flags, args)
  const faults: string[] = []
  const settings: Record<string, unknown> = {}
  for (const [name, group] of groups) {
    try {
      settings[name] = await group.settings(values, context)
    } catch (error) {
      if (!(error instanceof UsageError)) throw error
      faults.push(...error.faults)
    }
  }
  if (faults.length > 0) throw new UsageError(faults)
  const shown = Object.entries(flags).map(([name, flag]) => [name, flag.format(values[name])])
  return { ...(settings as Omit<ServerOptions, 'flags'>), flags: Object.fromEntries(shown) }
}
