/** kube-apiserver's flags by group, in the order that --help shows (L5), and the settings they come to. */
import { admission } from './admission.ts'
import { audit } from './audit.ts'
import { authentication } from './authentication.ts'
import { authorization } from './authorization.ts'
import { encryption } from './encryption.ts'
import { features } from './features.ts'
import type { Flags, FlagValues } from './flags.ts'
import { parseFlags, UsageError } from './flags.ts'
import { generic } from './generic.ts'
import type { OptionContext, OptionGroup } from './optionGroup.ts'
import { secureServing } from './secureServing.ts'
import { serving } from './serving.ts'

export const optionGroups = { generic, secureServing, features, encryption, audit, authentication, authorization, admission } as const

/** Those of a server that runs alone, without a cluster around it. */
export const aloneGroups = { serving, ...optionGroups } as const

type SettingsOf<G> = G extends OptionGroup<infer _F, infer S> ? S : never
export type OptionsOf<Groups> = { readonly [name in keyof Groups]: SettingsOf<Groups[name]> } & {
  /** Every flag's value, by name, as /flagz shows it. */
  readonly flags: Readonly<Record<string, string>>
}
export type ServerOptions = OptionsOf<typeof optionGroups>

export function serverOptions(args: readonly string[], context: OptionContext): Promise<ServerOptions> {
  return readOptions(optionGroups, args, context)
}

/** @throws UsageError with every fault of the first stage that finds one: notation first, then what the groups check */
export async function readOptions<Groups extends object>(from: Groups, args: readonly string[], context: OptionContext): Promise<OptionsOf<Groups>> {
  const groups = Object.entries(from) as [string, OptionGroup<Flags, unknown>][]
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
