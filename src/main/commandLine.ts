/** The command line (L5): builds the commands over local clusters, and turns failures into exit codes. */
import os from 'node:os'
import { Command, CommanderError } from 'commander'
import { printable, printableError, printableLines } from '#base/printable'
import { kubernetesRelease, kubernetesVersion, skiffVersion } from '#base/version'
import type { Bundles } from '#cli/bundles'
import type { CommandContext, LocalPrograms } from '#cli/command'
import { CommandError, exitCodes } from '#cli/exitCodes'
import { registerCommands } from '#cli/program'
import type { Snapshots } from '#cli/snapshots'
import { asCommandError } from '#cli/systemErrors'
import { availableMemory } from '#host/availableMemory'
import { endsUp } from './localCluster/clusterLock.ts'
import type { LocalClusterDeps } from './localCluster/deps.ts'
import { createLocalClusterManager } from './localCluster/localClusterManager.ts'
import { localClusterDeps } from './localClusterDeps.ts'
import { createLocalPrograms } from './localPrograms.ts'

/** The entry starts these itself, before the command line is read (skiff.ts). */
const componentHelp = `
One component alone, in the foreground, with the flags of upstream's program:
  apiserver            skiff apiserver --help lists its flags
  controller-manager
  scheduler
  kubelet
  kube-proxy           serves Services on this host
  join HOST:PORT       a kubelet that joins a cluster with a bootstrap token: skiff join --help
  leave                takes this machine out of the cluster that it has joined: skiff leave --help
  etcd serve           the embedded store as an etcd server (API v3)
  nodegroup serve      the node groups of a local cluster, for upstream's cluster-autoscaler`

export async function runCommandLine(argv: readonly string[]): Promise<void> {
  const interruption = { remains: '' }
  const context = realContext(argv, interruption)
  const program = new Command('skiff')
    .enablePositionalOptions()
    .description(`Kubernetes v${kubernetesVersion}, whole, in TypeScript`)
    .version(`Skiff v${skiffVersion}\nKubernetes ${kubernetesRelease}`)
    .addHelpText('after', componentHelp)
    .showHelpAfterError('(skiff --help lists the commands)')
  program.exitOverride().configureOutput({ writeErr: (text) => context.stderr.write(printableLines(text)) })
  registerCommands(program, context)
  for (const command of program.commands) inheritErrors(command)
  process.once('SIGINT', () => {
    const { remains } = interruption
    context.stderr.write(remains ? `\nerror: interrupted\nhint: ${printable(remains)}\n` : '')
    process.exit(exitCodes.interrupted)
  })
  // Another command that deletes the cluster which this one starts; it removes what was made.
  process.once(endsUp, () => {
    context.stderr.write('\nerror: another command deletes the cluster\n')
    process.exit(exitCodes.conflict)
  })
  // The reader has closed the pipe, as `head` does after its lines.
  process.stdout.once('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? exitCodes.ok : exitCodes.internal))
  try {
    await program.parseAsync([...argv])
  } catch (error) {
    process.exitCode = report(error, context)
  }
  await Promise.all([written(process.stdout), written(process.stderr)])
  // Sockets of a probe may linger for a moment.
  process.exit(process.exitCode ?? 0)
}

/** Resolves when the reader of the stream has taken everything: a pipe takes 64 KiB at once, and the status of ten thousand nodes has a megabyte. */
function written(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => stream.write('', () => resolve()))
}

function inheritErrors(command: Command): void {
  command.exitOverride()
  for (const child of command.commands) inheritErrors(child)
}

function report(thrown: unknown, context: CommandContext): number {
  const error = asCommandError(thrown)
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
  if (error instanceof CommandError) {
    const lines = [`error: ${error.message}`, ...error.details.map((line) => `  ${line}`), ...(error.hint ? [`hint: ${error.hint}`] : [])]
    context.stderr.write(lines.map((line) => `${printable(line)}\n`).join(''))
    return exitCodes[error.exit]
  }
  context.stderr.write(`error: ${printableError(error)}\n`)
  return exitCodes.internal
}

function realContext(argv: readonly string[], interruption: { remains: string }): CommandContext {
  const deps = localClusterDeps(argv)
  const { clock, exec, isRoot, platform } = deps
  const local = createLocalPrograms(clock)
  return {
    clusters: createLocalClusterManager(deps),
    snapshots: lazySnapshots(deps),
    bundles: lazyBundles(deps, local),
    explainPolicies: async (question) => (await import('#network/policy/explain')).explainPolicies(question),
    componentFlags: async () => (await import('./localCluster/componentArgs.ts')).componentFlags(),
    clock,
    exec,
    env: process.env,
    home: os.homedir(),
    isRoot,
    availableMemory,
    platform,
    local,
    ifInterrupted: (remains) => {
      interruption.remains = remains
    },
    stdout: { write: (text) => process.stdout.write(printableLines(text)), isTTY: process.stdout.isTTY ?? false },
    // Progress colors and overwrites its lines; it escapes the titles that it is given itself.
    stderr: { write: (text) => process.stderr.write(text), isTTY: process.stderr.isTTY ?? false, columns: process.stderr.columns },
  }
}

/** Loaded by the commands that need it. */
function lazySnapshots(deps: LocalClusterDeps): Snapshots {
  const load = async () => (await import('./snapshot/snapshots.ts')).createSnapshots(deps)
  return {
    save: async (...args) => (await load()).save(...args),
    status: async (file) => (await load()).status(file),
    diff: async (first, second) => (await load()).diff(first, second),
    restore: async (...args) => (await load()).restore(...args),
  }
}

function lazyBundles(deps: LocalClusterDeps, local: LocalPrograms): Bundles {
  const load = async () => (await import('./bundle/bundles.ts')).createBundles(deps, local)
  return {
    objectFile: async (directory) => (await load()).objectFile(directory),
    serve: async (file) => (await load()).serve(file),
    serveStopped: async (name) => (await load()).serveStopped(name),
  }
}
