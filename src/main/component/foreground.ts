/**
 * One component as a process in the foreground (L5): help, flags that cannot be used, and how it ends, the same for all of them.
 * Upstream: component-base/cli Run, and the commands of cmd/kube-*.
 */
import path from 'node:path'
import { printable } from '#base/printable'
import { exitCodes } from '#cli/exitCodes'
import { createConfigFile } from '../apiserver/configFile.ts'
import { type Flags, UsageError } from '../apiserver/options/flags.ts'
import type { OptionGroup } from '../apiserver/options/optionGroup.ts'
import { type OptionsOf, readOptions, usage } from '../apiserver/options/readOptions.ts'
import { createRealClock } from '../realClock.ts'

export interface ForegroundProgram<Groups> {
  /** As typed after `skiff`. */
  readonly command: string
  /** One sentence for --help. */
  readonly about: string
  /** The flags that it cannot do without, as --help shows them. */
  readonly needs: string
  readonly groups: Groups
  /** The flags that the given ones stand for, such as those of a file. Absent: themselves. @throws UsageError */
  readonly expand?: ((args: readonly string[]) => Promise<readonly string[]>) | undefined
  /** Resolves when the signal has stopped it. @throws UsageError for what the flags name and cannot be used */
  run(options: OptionsOf<Groups>, signal: AbortSignal): Promise<void>
}

/**
 * Resolves with the exit code when the signal has stopped the component, or at once when the flags cannot be used.
 * @throws Error when it failed, or its lead was lost: the process ends with 1
 */
export async function runInForeground<Groups extends object>(
  { command, about, needs, groups, expand = async (given) => given, run }: ForegroundProgram<Groups>,
  args: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    const shown = groups as unknown as Readonly<Record<string, OptionGroup<Flags, unknown>>>
    process.stdout.write(`${about}\n\nUsage:\n  skiff ${command} ${needs === '' ? '' : `${needs} `}[flags]\n\n${usage(shown)}`)
    return exitCodes.ok
  }
  if (args.includes('--version')) {
    const { versionInfo } = await import('#apiserver/endpoints/nonResource')
    process.stdout.write(`Kubernetes ${versionInfo.gitVersion}\n`)
    return exitCodes.ok
  }
  try {
    const clock = createRealClock()
    await run(await readOptions(groups, await expand(args), { file: (name) => createConfigFile(path.resolve(name), clock) }), signal)
    return exitCodes.ok
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    for (const fault of error.faults) process.stderr.write(`error: ${printable(fault)}\n`)
    process.stderr.write(`hint: skiff ${command} --help lists the flags\n`)
    return exitCodes.usage
  }
}
