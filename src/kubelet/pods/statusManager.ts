/**
 * Sends pod statuses to the API server (L3): the smallest patch that makes the server's status ours, never more often than it changes.
 * Upstream: kubelet/status/status_manager.go (v1.36).
 */
import type { PodStatus } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { bareMap, emptyMap } from '#base/bareMap'
import { deepCopy } from '#base/frozen'
import { messageOf } from '#base/messageOf'
import { pods } from '#client/builtIn'
import type { FrozenPod } from '../core/containers.ts'
import { isTerminalPhase, turnIfLarge } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { equal } from '../core/equal.ts'
import { isKubeletCondition } from './podStatus.ts'
import { cutStatus, maxCutLevel } from './statusSize.ts'

export interface StatusManager {
  /** The last status set for the pod, or nothing. */
  get(uid: string): Frozen<PodStatus> | undefined
  /** Remembers the status and sends it when it differs from what the server has. */
  set(pod: FrozenPod, status: PodStatus): void
  /** Takes the pod as the API has it now: if another client changed the kubelet's part of the status, it is sent again. */
  noticed(pod: FrozenPod): void
  /** Compares again with what the server has: the object is another one now. */
  resend(uid: string): void
  /** Sends what is still unsent and resolves when the server has it. */
  flush(uid: string): Promise<void>
  /** The pod is gone: forget it. */
  remove(uid: string): void
}

const listKeys: Readonly<Record<string, string>> = bareMap({ conditions: 'type', podIPs: 'ip', hostIPs: 'ip' })

/** Set by the components that create claims; a node may not change them. */
const membersOfOthers = new Set(['resourceClaimStatuses', 'extendedResourceClaimStatus', 'nodeAllocatableResourceClaimStatuses'])

/**
 * A strategic merge patch from one status to the other: changed members whole, removed ones null; conditions only those that changed;
 * lists of addresses whole, with the order directive that upstream's patches have.
 */
export function statusPatch(before: Frozen<PodStatus>, after: Frozen<PodStatus>): Record<string, unknown> | undefined {
  const patch: Record<string, unknown> = emptyMap()
  const old = before as Readonly<Record<string, unknown>>
  const next = after as Readonly<Record<string, unknown>>
  for (const key of new Set([...Object.keys(old), ...Object.keys(next)])) {
    if (membersOfOthers.has(key) || equal(old[key], next[key])) continue
    const mergeKey = listKeys[key]
    if (next[key] === undefined) patch[key] = null
    else if (mergeKey) Object.assign(patch, listPatch(key, mergeKey, (old[key] ?? []) as Item[], next[key] as Item[]))
    else patch[key] = next[key]
  }
  return Object.keys(patch).length > 0 ? { ...patch } : undefined
}

type Item = Readonly<Record<string, unknown>>

function listPatch(list: string, mergeKey: string, before: readonly Item[], after: readonly Item[]): Record<string, unknown> {
  const byKey = new Map(before.map((item) => [item[mergeKey], item]))
  const wanted = new Set(after.map((item) => item[mergeKey]))
  // A strategic merge keeps absent members of an item: the patch sets removed ones to null.
  const gone = (item: Item) => Object.keys(byKey.get(item[mergeKey]) ?? {}).filter((key) => item[key] === undefined)
  const changed = after
    .filter((item) => !equal(byKey.get(item[mergeKey]), item))
    .map((item) => ({ ...item, ...Object.fromEntries(gone(item).map((key) => [key, null])) }))
  const removed = before.filter((item) => !wanted.has(item[mergeKey])).map((item) => ({ $patch: 'delete', [mergeKey]: item[mergeKey] }))
  return { [`$setElementOrder/${list}`]: after.map((item) => ({ [mergeKey]: item[mergeKey] })), [list]: [...changed, ...removed] }
}

interface Entry {
  pod: FrozenPod
  status: Frozen<PodStatus>
  sent: Frozen<PodStatus>
  /** The uid of the object that has `sent`. */
  sentTo: string | undefined
  sending: Promise<void>
  dirty: boolean
  /** The object's version that has `sent`. Versions are numbers that only grow. */
  sentVersion: number
  /** When the unsent status was set, in monotonic time. */
  changedMs: number
  /** Rises when the server refuses the status as too large. */
  cutLevel: number
}

function versionOf({ metadata }: FrozenPod): number {
  return Number(metadata.resourceVersion ?? 0)
}

/**
 * What the server is to have: conditions of others as they are there, and no end of the pod while something of it may still run, because what a pod has
 * is given to others once it has ended. Upstream: status_manager.go mergePodStatus.
 */
export function mergePodStatus(server: Frozen<PodStatus>, own: Frozen<PodStatus>, couldHaveRunningContainers: boolean): Frozen<PodStatus> {
  const isDelayed = couldHaveRunningContainers && isTerminalPhase(own.phase) && !isTerminalPhase(server.phase)
  const others = (server.conditions ?? []).filter(({ type }) => !isKubeletCondition(type))
  const disruption = (own.conditions ?? []).filter(({ type }) => type === disruptionTarget)
  const added = isDelayed || isTerminalPhase(server.phase) ? [] : disruption
  const conditions = [
    ...others.filter(({ type }) => !added.some((condition) => condition.type === type)),
    ...added,
    ...(own.conditions ?? []).filter(({ type }) => isKubeletCondition(type)),
  ]
  // A terminal phase is final, also one that another client set.
  const isOver = isTerminalPhase(server.phase) && server.phase !== own.phase
  const { phase, reason, message } = isDelayed || isOver ? server : own
  return { ...own, conditions, phase, reason, message }
}

const disruptionTarget = 'DisruptionTarget'

const retryMs = 2_000

export interface StatusManagerDeps {
  /** What stands for a pod in the API: itself, or the mirror of a static pod, which may not be there yet. */
  apiPod(pod: FrozenPod): FrozenPod | undefined
  couldHaveRunningContainers(uid: string): boolean
  /** Called with each new status, before it is sent. */
  onChanged(before: Frozen<PodStatus>, after: Frozen<PodStatus>): void
  /** Called with each status that was sent. */
  onReported(pod: FrozenPod, status: Frozen<PodStatus>): void
}

export function createStatusManager(context: KubeletContext, deps: StatusManagerDeps, signal: AbortSignal): StatusManager {
  const { apiPod, couldHaveRunningContainers, onReported } = deps
  const syncDuration = context.metrics.histogram({
    name: 'kubelet_pod_status_sync_duration_seconds',
    help: 'How long it took from a change of a pod until the API had its status, in seconds.',
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60],
  })
  const syncSeconds = syncDuration.series({})
  const cut = context.metrics.counter({ name: 'kubelet_pod_status_cuts_total', help: 'How often a pod status was cut because it was too large.' })
  const entries = new Map<string, Entry>()
  const client = context.client.of(pods)

  const statusFor = ({ pod, status, cutLevel }: Entry, server: Frozen<PodStatus>) =>
    cutStatus(mergePodStatus(server, status, couldHaveRunningContainers(pod.metadata.uid ?? '')), cutLevel)

  const send = async (entry: Entry): Promise<void> => {
    while (entry.dirty && !signal.aborted) {
      entry.dirty = false
      const target = apiPod(entry.pod)
      // A mirror that is not created yet triggers a resend later; other pods without an API object have no status to send.
      if (!target) return
      if (target.metadata.uid !== entry.sentTo) {
        entry.sent = target.status ?? {}
        entry.sentTo = target.metadata.uid
      }
      const { namespace, name = '', uid } = target.metadata
      await turnIfLarge(entry.pod)
      const status = statusFor(entry, entry.sent)
      const patch = statusPatch(entry.sent, status)
      if (!patch) continue
      try {
        const answer = await client.patch({ namespace, name }, 'strategic', { metadata: { uid }, status: patch }, { subresource: 'status', signal })
        // Others write into the status as well: the next patch starts from what the server has now.
        entry.sent = answer.status
        entry.sentVersion = versionOf(answer)
        syncSeconds.observe((context.clock.monotonicMs() - entry.changedMs) / 1000)
        entry.changedMs = context.clock.monotonicMs()
        onReported(entry.pod, status)
      } catch (error) {
        if (signal.aborted || isStatus(error, 'NotFound')) return
        if (isStatus(error, 'RequestEntityTooLarge') && entry.cutLevel < maxCutLevel) {
          entry.cutLevel++
          cut.inc()
          context.log.warn('Pod status is too large, leaving out details', { name, namespace, level: entry.cutLevel })
          entry.dirty = true
          continue
        }
        // The uid in the patch conflicts when another pod of that name has taken its place.
        if (isStatus(error, 'Conflict') || isStatus(error, 'Invalid')) {
          const current = await client.get({ namespace, name }, { signal }).catch(() => undefined)
          if (!current || current.metadata.uid !== uid) return
          entry.sent = current.status
        }
        context.log.v(2).info('Pod status not sent, will retry', { name, namespace, error: messageOf(error) })
        entry.dirty = true
        await context.clock.sleep(retryMs, signal).catch(() => {})
      }
    }
  }

  return {
    get: (uid) => entries.get(uid)?.status,
    set: (pod, status) => {
      const uid = pod.metadata.uid ?? ''
      const known = entries.get(uid)
      if (!known) {
        const entry: Entry = {
          pod,
          status: deepCopy<PodStatus>(status),
          sent: pod.status ?? {},
          sentTo: uid,
          sending: Promise.resolve(),
          dirty: true,
          sentVersion: versionOf(pod),
          changedMs: context.clock.monotonicMs(),
          cutLevel: 0,
        }
        entries.set(uid, entry)
        deps.onChanged(entry.sent, entry.status)
        entry.sending = send(entry)
        return
      }
      known.pod = pod
      if (equal(known.status, status)) return
      // A terminal phase never goes back.
      if (isTerminalPhase(known.status.phase) && known.status.phase !== status.phase) return
      deps.onChanged(known.status, status)
      known.status = deepCopy<PodStatus>(status)
      if (!known.dirty) known.changedMs = context.clock.monotonicMs()
      known.dirty = true
      known.sending = known.sending.then(() => send(known))
    },
    noticed: (pod) => {
      const uid = pod.metadata.uid ?? ''
      const known = entries.get(uid)
      // The kubelet's own writes and older versions arrive here too: only a newer version with another status counts.
      if (!known || known.dirty || versionOf(pod) <= known.sentVersion) return
      const there = pod.status ?? {}
      if (!statusPatch(there, statusFor(known, there))) return
      known.sent = there
      known.dirty = true
      known.sending = known.sending.then(() => send(known))
    },
    resend: (uid) => {
      const known = entries.get(uid)
      if (!known) return
      known.dirty = true
      known.sending = known.sending.then(() => send(known))
    },
    flush: async (uid) => {
      await entries.get(uid)?.sending
    },
    remove: (uid) => {
      entries.delete(uid)
    },
  }
}
