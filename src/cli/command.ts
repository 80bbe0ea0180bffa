/** What a command is given (L4): the world at its edge, so that commands can be tested whole. */
import type { Command } from 'commander'
import type { ExplainPolicies } from '#api/debug/networkPolicy'
import type { Clock } from '#base/clock'
import type { PluginRunner } from '#client/execCredential'
import type { Exec } from '#host/exec'
import type { Bundles } from './bundles.ts'
import type { ClusterManager } from './clusterManager.ts'
import { CommandError } from './exitCodes.ts'
import type { ComponentFlags } from './kubeadm/upFlags.ts'
import { contextName, currentContext, kubeconfigPlace } from './kubeconfigFile.ts'
import { createProgress, type Progress } from './progress.ts'
import type { Snapshots } from './snapshots.ts'

export interface LocalPrograms {
  /** Runs a program on the user's terminal; resolves with its exit code, and undefined when there is no such program. */
  run(command: string, args: readonly string[], env: Readonly<Record<string, string>>): Promise<number | undefined>
  /** Runs the programs that a kubeconfig names for credentials. */
  readonly plugins: PluginRunner
  /** A new certificate for 127.0.0.1 and the authority that its clients trust, as PEM. */
  certificate(): Promise<{ readonly cert: string; readonly key: string; readonly ca: string }>
  /** The folder of the built page of `skiff ui`. */
  readonly pageFolder: string
  /** An empty directory of the user alone, which is removed when this process ends. */
  directory(): string
  /** Writes data to standard output as it is. Resolves when the reader has taken it, or more of it can wait. */
  print(data: string | Uint8Array): Promise<void>
  /** The exit code of this command when nothing fails. */
  exitWith(code: number): void
}

export interface CommandContext {
  readonly clusters: ClusterManager
  readonly snapshots: Snapshots
  readonly bundles: Bundles
  readonly explainPolicies: ExplainPolicies
  /** The flags that the components of a local cluster take. */
  componentFlags(): Promise<ComponentFlags>
  readonly clock: Clock
  readonly exec: Exec
  readonly env: Readonly<Record<string, string | undefined>>
  readonly home: string
  readonly isRoot: boolean
  readonly platform: string
  /** Bytes of memory that a local cluster can still get. */
  availableMemory(): number
  readonly stdout: { write(text: string): void; readonly isTTY: boolean }
  /** `columns`: the terminal's width. */
  readonly stderr: { write(text: string): void; readonly isTTY: boolean; readonly columns?: number | undefined }
  /** Programs that the user sees, and what a server on localhost needs. */
  readonly local: LocalPrograms
  /** Sets the hint about remains that is printed if the user interrupts the command from now on. */
  ifInterrupted(remains: string): void
}

/** One file per command; the list is commands/index.ts. */
export interface CliCommand {
  readonly name: string
  /** Adds the command and its flags to the program. */
  register(program: Command, context: CommandContext): void
}

/** Steps go to standard error, so that standard output holds only what was asked for. */
export function progressFor(context: CommandContext, quiet: boolean): Progress {
  const { env, stderr, clock } = context
  const knowsEscapes = env.TERM !== undefined && env.TERM !== '' && env.TERM !== 'dumb'
  const terminal = stderr.isTTY && knowsEscapes && !env.CI
  return createProgress({ write: (text) => stderr.write(text), terminal, color: terminal && !env.NO_COLOR, columns: stderr.columns, quiet, clock })
}

export const defaultClusterName = 'skiff'

const clusterName = /^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$/

/** Checks a cluster's name: it becomes part of file, interface and context names. */
export function checkName(name: string): string {
  if (!clusterName.test(name)) {
    throw new CommandError('usage', `"${name}" is no cluster name: at most 40 lower-case letters, digits and '-', beginning and ending with a letter or digit`)
  }
  return name
}

/** The named cluster, the only one there is, the one that kubectl goes to, or the default one. */
export async function resolveCluster(context: CommandContext, name: string | undefined): Promise<string> {
  if (name !== undefined) {
    if (await context.clusters.exists(checkName(name))) return name
    throw missing(name)
  }
  const names = await context.clusters.names()
  if (names.length === 1) return names[0] as string
  if (names.length === 0) throw new CommandError('notFound', 'there is no cluster', { hint: 'create one with: skiff up' })
  const current = await clusterOfContext(context, names)
  if (current !== undefined) {
    if (!announced.has(context)) context.stderr.write(`Cluster "${current}": kubectl's current context is skiff-${current}\n`)
    announced.add(context)
    return current
  }
  if (names.includes(defaultClusterName)) return defaultClusterName
  throw several(names)
}

/** Runs of commands that have named the cluster already. */
const announced = new WeakSet<CommandContext>()

/** Undefined: the current context is of another program, or of a cluster of the same name in another SKIFF_HOME. */
async function clusterOfContext(context: CommandContext, names: readonly string[]): Promise<string | undefined> {
  const current = await currentContext(kubeconfigPlace(context))
  const named = names.find((name) => current?.name === contextName(name))
  if (named === undefined) return undefined
  const entry = await context.clusters.kubeconfig(named).catch(() => undefined)
  return entry?.server === current?.server ? named : undefined
}

export function several(names: readonly string[]): CommandError {
  return new CommandError('usage', `there are several clusters: ${names.join(', ')}`, { hint: 'name one of them' })
}

export function missing(name: string): CommandError {
  return new CommandError('notFound', `there is no cluster "${name}"`, { hint: `create it with: skiff up ${name}` })
}
