/**
 * Removes the directories of deleted local-path volumes, which the controller requests by annotations on the Node (L3), and clears the annotations. Several
 * removals run in parallel, each for a slice of time. What an earlier kubelet left unfinished is removed, too. removalQueue.ts decides about the order. A
 * simulated node has no directories and clears the annotations at once.
 */

import type { Node } from '#api/gen/types/core.v1'
import { removalChanges, requestedRemovals } from '#api/helpers/localPath'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { least } from '#base/extremes'
import { messageOf } from '#base/messageOf'
import { createWakeUp } from '#base/wakeUp'
import { nodes } from '#client/builtIn'
import type { KubeletContext } from '../core/context.ts'
import { removeLocalPath, retiredLocalPaths } from './localPath.ts'
import { localVolumePlugin } from './localVolume.ts'
import { type RemovalOutcome, RemovalQueue } from './removalQueue.ts'
import type { VolumeManager } from './volumeManager.ts'

export interface LocalPathRemovals {
  /** Called with the Node, whenever it changes. */
  noticed(node: Frozen<Node>): void
  run(signal: AbortSignal): Promise<void>
}

const workers = 4
const sliceMs = 2_000
/** A removal that takes long does not hold back the report of those before it. */
const reportAfterMs = 1_000
const reportRetryMs = 5_000

export function createLocalPathRemovals(context: KubeletContext, volumes: Pick<VolumeManager, 'inTurn'>): LocalPathRemovals {
  const { clock } = context
  const wakeUp = createWakeUp()
  const queue = new RemovalQueue()
  const running = new Set<Promise<void>>()
  const reports = createReports(context, queue)
  let current: Frozen<Node> | undefined
  let leftBehind = new Set<string>()

  const start = (work: Promise<void>): void => {
    const ended = work.finally(() => {
      running.delete(ended)
      wakeUp.ring()
    })
    running.add(ended)
  }

  const runSlice = async (name: string, signal: AbortSignal): Promise<void> => {
    const begunMs = clock.monotonicMs()
    let problem = ''
    const outcome: RemovalOutcome = await removeSlice(context, volumes, name, signal).catch((error: unknown) => {
      problem = messageOf(error)
      return 'failed'
    })
    const nowMs = clock.monotonicMs()
    // Only the first failure in a row is reported.
    if (queue.put(name, outcome, nowMs - begunMs, nowMs) && !signal.aborted) recordFailure(context, name, current, problem)
    if (outcome === 'removed') leftBehind.delete(name)
  }

  /** Starts what is due. @returns when something is due next */
  const startDue = (signal: AbortSignal): number | undefined => {
    const nowMs = clock.monotonicMs()
    queue.want(new Set([...(current ? requestedRemovals(current) : []), ...leftBehind]))
    while (running.size < workers) {
      const name = queue.take(nowMs)
      if (name === undefined) break
      start(runSlice(name, signal))
    }
    const reportMs = reports.dueMs(nowMs, running.size === 0)
    if (reportMs !== undefined && reportMs <= nowMs) start(reports.send(signal))
    return earliest(reportMs, running.size < workers ? queue.nextDueMs() : undefined)
  }

  return {
    noticed: (node) => {
      const isConcerned = requestedRemovals(node).length + (current ? requestedRemovals(current).length : 0) > 0
      current = node
      if (isConcerned) wakeUp.ring()
    },
    run: async (signal) => {
      leftBehind = await findLeftBehind(context)
      while (!signal.aborted) {
        const dueMs = startDue(signal)
        const timer = dueMs === undefined ? undefined : clock.timer(Math.max(0, dueMs - clock.monotonicMs()), wakeUp.ring)
        await wakeUp.wait(signal)
        timer?.cancel()
      }
      await Promise.all(running)
    },
  }
}

function earliest(...times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined)
  return known.length === 0 ? undefined : least(known)
}

/** Volumes whose removal an earlier kubelet began; the Node need not ask for it any more. */
async function findLeftBehind({ host, config, log }: KubeletContext): Promise<Set<string>> {
  if (!host) return new Set()
  try {
    return new Set(await retiredLocalPaths({ host, rootDirectory: config.rootDirectory }))
  } catch (error) {
    log.warn('Failed to look for directories of deleted volumes', { error: messageOf(error) })
    return new Set()
  }
}

/** Removes what a slice of time allows. @throws Error when something cannot be removed */
async function removeSlice({ host, config }: KubeletContext, volumes: Pick<VolumeManager, 'inTurn'>, name: string, signal: AbortSignal) {
  if (!host) return 'removed'
  const exclusive = <T>(work: () => Promise<T>) => volumes.inTurn(localVolumePlugin, name, work)
  return removeLocalPath({ host, rootDirectory: config.rootDirectory }, name, { signal, sliceMs, exclusive })
}

function recordFailure({ config, log, recorder }: KubeletContext, name: string, node: Frozen<Node> | undefined, problem: string): void {
  log.warn('Failed to remove the directory of a deleted volume', { volume: name, error: problem })
  const reference = { kind: 'Node', name: config.nodeName, uid: node?.metadata.uid ?? config.nodeName }
  recorder.event(reference, 'Warning', 'VolumeFailedDelete', `failed to delete volume ${name}: ${problem}`)
}

interface Reports {
  /** When removed volumes are to be reported; undefined: there are none, or a report is under way. */
  dueMs(nowMs: number, isIdle: boolean): number | undefined
  /** Reports all removed volumes with one patch. */
  send(signal: AbortSignal): Promise<void>
}

function createReports({ client, clock, config, log }: KubeletContext, queue: RemovalQueue): Reports {
  let isSending = false
  let notBeforeMs = 0
  let waitingSinceMs: number | undefined
  const patch = async (names: readonly string[], signal: AbortSignal) => {
    try {
      await client.of(nodes).patch({ name: config.nodeName }, 'merge', { metadata: { annotations: removalChanges([], names) } }, { signal })
    } catch (error) {
      if (!isStatus(error, 'NotFound')) throw error
    }
  }
  return {
    dueMs: (nowMs, isIdle) => {
      if (isSending || queue.unreported().length === 0) return undefined
      waitingSinceMs ??= nowMs
      return Math.max(notBeforeMs, isIdle ? nowMs : waitingSinceMs + reportAfterMs)
    },
    send: async (signal) => {
      isSending = true
      waitingSinceMs = undefined
      const names = queue.unreported()
      try {
        await patch(names, signal)
        queue.reported(names, clock.monotonicMs())
      } catch (error) {
        notBeforeMs = clock.monotonicMs() + reportRetryMs
        if (!signal.aborted) log.v(1).info('Failed to report removed volumes, trying again', { error: messageOf(error) })
      } finally {
        isSending = false
      }
    },
  }
}
