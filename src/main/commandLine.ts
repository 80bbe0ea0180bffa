/** The command line (L5): builds the commands over local clusters, and turns failures into exit codes. */
import os from 'node:os'
import { Command, CommanderError } from 'commander'
import { printable, printableError, printableLines } from '#base/printable'
import { kubernetesRelease, kubernetesVersion, skiffVersion } from '#base/version'
import type { CommandContext } from '#cli/command'
import { commands } from '#cli/commands/index'
import { CommandError, exitCodes } from '#cli/exitCodes'
import { createExec } from '#host/exec'
import { skiffHome } from './localCluster/clusterState.ts'
import { createLocalClusterManager } from './localCluster/localClusterManager.ts'
import { createRealClock } from './realClock.ts'

export async function runCommandLine(argv: readonly string[]): Promise<void> {
  const context = realContext(argv)
  const program = new Command('skiff')
    .description(`Kubernetes v${kubernetesVersion}, whole, in TypeScript`)
    .version(`Skiff v${skiffVersion}\nKubernetes ${kubernetesRelease}`)
    .showHelpAfterError('(skiff --help lists the commands)')
  program.exitOverride().configureOutput({ writeErr: (text) => context.stderr.write(printableLines(text)) })
  for (const command of commands) command.register(program, context)
  for (const command of program.commands) inheritErrors(command)
  process.once('SIGINT', () => process.exit(exitCodes.interrupted))
  // The reader has closed the pipe, as `head` does after its lines.
  process.stdout.once('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? exitCodes.ok : exitCodes.internal))
  try {
    await program.parseAsync([...argv])
  } catch (error) {
    process.exitCode = report(error, context)
  }
  // Sockets of a probe may linger for a moment; what had to be written is written.
  process.exit(process.exitCode ?? 0)
}

function inheritErrors(command: Command): void {
  command.exitOverride()
  for (const child of command.commands) inheritErrors(child)
}

function report(error: unknown, context: CommandContext): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
  if (error instanceof CommandError) {
    context.stderr.write(`error: ${printable(error.message)}\n${error.hint ? `hint: ${printable(error.hint)}\n` : ''}`)
    return exitCodes[error.exit]
  }
  context.stderr.write(`error: ${printableError(error)}\n`)
  return exitCodes.internal
}

function realContext(argv: readonly string[]): CommandContext {
  const clock = createRealClock()
  const exec = createExec()
  const isRoot = process.getuid?.() === 0
  const home = os.homedir()
  return {
    clusters: createLocalClusterManager({
      clock,
      exec,
      isRoot,
      platform: process.platform,
      home: skiffHome(process.env, isRoot, home),
      self: [process.execPath, argv[1] ?? ''],
    }),
    clock,
    exec,
    env: process.env,
    home,
    isRoot,
    platform: process.platform,
    stdout: { write: (text) => process.stdout.write(printableLines(text)), isTTY: process.stdout.isTTY ?? false },
    // Progress colors and overwrites its lines; it escapes the titles that it is given itself.
    stderr: { write: (text) => process.stderr.write(text), isTTY: process.stderr.isTTY ?? false },
  }
}
