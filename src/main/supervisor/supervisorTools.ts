/** What the parts of the supervisor share (L5). It loads little code: its memory is part of what every cluster costs. */
import { createBackoff } from '#client/backoff'
import type { Exec } from '#host/exec'
import type { ProcessTools } from '../layouts/processTools.ts'
import type { FollowedProcess } from '../layouts/superviseProcess.ts'
import type { ClusterPaths, ClusterState } from '../localCluster/clusterState.ts'
import { lastLinesOf } from '../localCluster/logEnd.ts'
import { recordRestart } from '../localCluster/restartRecord.ts'

export interface SupervisorTools extends ProcessTools {
  readonly exec: Exec
  readonly paths: ClusterPaths
  readonly state: ClusterState
  readonly verbosity: number
}

const keptLines = 20

/** A start fails while its program is replaced, or while the host lacks descriptors or space. */
const failedStarts = { initialMs: 500, maxMs: 10_000, factor: 2, jitter: 0, resetAfterMs: 60_000 }

/** Makes a start that logs a failure, and then returns undefined after a pause that grows while starts fail. */
export function retriedStart<P>({ clock, random, log }: SupervisorTools, what: string, start: () => Promise<P | undefined>, signal: AbortSignal) {
  const nextPauseMs = createBackoff(clock, random, failedStarts)
  return async (): Promise<P | undefined> => {
    try {
      return await start()
    } catch (error) {
      log.error(error, 'A process could not be started, trying again', { what })
      await clock.sleep(nextPauseMs(), signal).catch(() => {})
      return undefined
    }
  }
}

/** Writes down that a process ended, with the last lines of its log. Never throws: a full disk is one of the reasons for an end. */
export async function writeDown(tools: Pick<SupervisorTools, 'clock' | 'log' | 'paths'>, what: string, ended: FollowedProcess, logFile: string): Promise<void> {
  const ending = describeEnding(ended)
  tools.log.warn('A process ended, starting it again', { what, ending })
  try {
    await recordRestart(tools.paths, { what, ending, atMs: tools.clock.now(), lines: await lastLinesOf(logFile, keptLines) }, tools.clock)
  } catch (error) {
    tools.log.error(error, 'The end could not be written down', { what })
  }
}

function describeEnding({ exitCode, signalCode }: FollowedProcess): string {
  if (signalCode) return `signal ${signalCode}`
  return typeof exitCode === 'number' ? `exit code ${exitCode}` : 'killed or exited: another process started it, which alone learns how'
}
