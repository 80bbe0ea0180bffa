/**
 * `skiff server run NAME` (L5): starts a cluster that exists, and stays in the foreground for systemd or another supervisor of services. It stops the cluster on
 * SIGTERM, and ends at once while it still waits for another command that works on the cluster. It ends with 0 when `skiff stop` or `skiff delete` stops the cluster, and with 1 when the cluster's own supervisor ends unasked, so that it is started again.
 */
import { printable } from '#base/printable'
import { checkName } from '#cli/command'
import { parseOptions } from '#cli/commands/up'
import { CommandError, exitCodes } from '#cli/exitCodes'
import { createProgress } from '#cli/progress'
import { exists } from '#host/files'
import { clusterPaths } from './clusterState.ts'
import type { LocalClusterDeps } from './deps.ts'
import { createLocalClusterManager } from './localClusterManager.ts'
import { runningProcess } from './processes.ts'

const lookEveryMs = 1000
/** The pid file is removed within this after an orderly end. */
const removalMs = 5000

/** @returns the exit code */
export async function runCluster(deps: LocalClusterDeps, words: readonly string[], signal: AbortSignal): Promise<number> {
  const progress = createProgress({ write: (text) => process.stderr.write(text), terminal: false, color: false, columns: 80, quiet: false, clock: deps.clock })
  try {
    const [name = '', ...more] = words
    if (more.length > 0 || name === '') throw new CommandError('usage', 'expected the name of a cluster', { hint: 'as in: skiff server run lab' })
    const clusters = createLocalClusterManager(deps)
    if (!(await clusters.exists(checkName(name)))) throw new CommandError('notFound', `there is no cluster "${name}"`)
    await createLocalClusterManager({ ...deps, endsWaiting: signal }).up(name, parseOptions({}), progress)
    const ending = await followSupervisor(clusterPaths(deps.home, name).supervisorPid, deps, signal)
    if (ending === 'asked') await clusters.stop(name, progress)
    return ending === 'crashed' ? exitCodes.internal : exitCodes.ok
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    const isStopped = signal.aborted && error.exit === 'conflict'
    process.stderr.write(`${isStopped ? 'stopped while waiting' : 'error'}: ${printable(error.message)}\n`)
    return isStopped ? exitCodes.ok : exitCodes[error.exit]
  }
}

/** Resolves when the signal has aborted (`asked`), or the supervisor has ended: stopped by a command, which removes its pid file, or `crashed`. */
export async function followSupervisor(
  pidFile: string,
  { clock }: Pick<LocalClusterDeps, 'clock'>,
  signal: AbortSignal,
): Promise<'asked' | 'stopped' | 'crashed'> {
  while (!signal.aborted) {
    await clock.sleep(lookEveryMs, signal).catch(() => {})
    if (signal.aborted || (await runningProcess(pidFile))) continue
    await clock.sleep(removalMs, signal).catch(() => {})
    // `start` may have followed `stop`.
    if (signal.aborted || (await runningProcess(pidFile))) continue
    return (await exists(pidFile)) ? 'crashed' : 'stopped'
  }
  return 'asked'
}
