/**
 * One heading of a program's --help: its flags, and the settings made of them (L5). A group is one file and one line in index.ts.
 * Upstream: the option structs of k8s.io/apiserver/pkg/server/options and pkg/kubeapiserver/options.
 */
import type { ConfigFile } from '#apiserver/core/configFile'
import type { Flags, FlagValues } from './flags.ts'

export interface OptionContext {
  /** A file that a flag names; it is followed where the setting can be reloaded. */
  file(path: string): ConfigFile
  /** True when the flag was given, even with its default value. Absent: no flags were given. */
  isGiven?(flag: string): boolean
}

export interface OptionGroup<F extends Flags, Settings> {
  /** As --help heads it: `Authentication`. */
  readonly name: string
  readonly flags: F
  /** The settings, from the values of all flags of the group and the files that they name. @throws UsageError with every fault */
  settings(values: FlagValues<F>, context: OptionContext): Promise<Settings> | Settings
}

/** Infers the group's types. */
export function optionGroup<const F extends Flags, Settings>(group: OptionGroup<F, Settings>): OptionGroup<F, Settings> {
  return group
}
