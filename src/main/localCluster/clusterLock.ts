/** Two commands that change one cluster go one after the other (L5): two `up` at once would make its network and start its server twice. */
import path from 'node:path'
import { CommandError } from '#cli/exitCodes'
import type { Progress } from '#cli/progress'
import { makePrivateDirectory } from '#host/files'
import { withLockFile } from '#host/lockFile'
import { commandOf, isRunning, type ProcessRef, signalIfThere } from '#host/processes'
import { clusterPaths } from './clusterState.ts'
import type { LocalClusterDeps } from './deps.ts'

/** Sent to an `up` or `start` by a command that deletes its cluster. */
export const endsUp = 'SIGUSR2'

/** Longer than the longest `up`. */
const lockTimeoutMs = 180_000

/** As exclusively(), and ends an `up` or `start` that holds the cluster. */
export async function exclusivelyToDelete<T>(deps: LocalClusterDeps, name: string, progress: Progress, work: () => Promise<T>): Promise<T> {
  return exclusively(deps, name, progress, work, { onHolder: (holder) => void endUp(holder) })
}

/** Signals the process that wrote the lock: the pid of one that has ended may belong to another program by now. */
async function endUp(holder: ProcessRef): Promise<void> {
  // Node, the entry, the command.
  const [, , command] = await commandOf(holder.pid)
  if ((command === 'up' || command === 'start') && (await isRunning(holder))) signalIfThere(holder.pid, endsUp)
}

interface Waiting {
  /** Called with the process of the command that holds the cluster, if it is on this host. */
  readonly onHolder?: (holder: ProcessRef) => void
  readonly timeoutMs?: number
}

/** @throws CommandError conflict when another command holds the cluster all the time */
export async function exclusively<T>(
  deps: LocalClusterDeps,
  name: string,
  progress: Progress | undefined,
  work: () => Promise<T>,
  { onHolder, timeoutMs = lockTimeoutMs }: Waiting = {},
): Promise<T> {
  const { lock } = clusterPaths(deps.home, name)
  await makePrivateDirectory(path.dirname(lock))
  const holder = (pid: number | undefined) => `another command${pid === undefined ? '' : ` (process ${pid})`}`
  const options = {
    clock: deps.clock,
    timeoutMs,
    signal: deps.endsWaiting,
    onWait: (pid: number | undefined, here: ProcessRef | undefined) => {
      progress?.note(`Waiting for ${holder(pid)} that works on cluster "${name}"`)
      if (here) onHolder?.(here)
    },
    refuse: (pid: number | undefined) =>
      new CommandError('conflict', `${holder(pid)} works on cluster "${name}"`, { hint: `try again when it has ended; if none runs, remove ${lock}` }),
  }
  return withLockFile(lock, options, work)
}
