/**
 * Stops containers and pods (L3): preStop, TERM, grace, KILL; sidecars after the regular containers, last started first stopped.
 * Upstream: kuberuntime_container.go killContainer, kuberuntime_termination_order.go (v1.36).
 */

import { deadlineScope } from '#base/abortScope'
import { messageOf } from '#base/messageOf'
import { orAborted } from '#base/orAborted'
import { rpcErrorText } from '#grpc/grpcError'
import { type FrozenContainer, type FrozenPod, findSpecContainer, isRestartableInitContainer } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { podReference } from '../core/podReference.ts'
import { type ContainerRecord, type PodRuntimeStatus, sandboxIPs } from '../core/podRuntimeStatus.ts'
import { annotationKeys } from '../core/runtimeLabels.ts'
import { runLifecycleHandler } from './lifecycle.ts'
import type { KillReason } from './podActions.ts'

/** The runtime is never given less than this, so that TERM has a chance. */
const minimumGraceSeconds = 2

export interface KillOptions {
  readonly message?: string | undefined
  readonly reason?: KillReason | undefined
  /** Overrides the pod's own grace period: a deletion's, or 0 for "now". */
  readonly graceSeconds?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Settles when it is this container's turn to stop. */
  readonly turn?: Promise<unknown> | undefined
}

/** How long a container may take: the override, the deletion's, the probe's own, the pod's. */
function gracePeriod(pod: FrozenPod, container: FrozenContainer | undefined, record: ContainerRecord, options: KillOptions): number {
  const probe = options.reason === 'LivenessProbe' ? container?.livenessProbe : options.reason === 'StartupProbe' ? container?.startupProbe : undefined
  const recorded = record.status.annotations[annotationKeys.podTerminationGracePeriod]
  return (
    options.graceSeconds ??
    pod.metadata.deletionGracePeriodSeconds ??
    probe?.terminationGracePeriodSeconds ??
    pod.spec.terminationGracePeriodSeconds ??
    (recorded === undefined ? minimumGraceSeconds : Number(recorded))
  )
}

/** Stops one container. The hook, the wait for its turn and the process share the grace period. */
export async function killContainer(context: KubeletContext, pod: FrozenPod, record: ContainerRecord, podIP: string, options: KillOptions = {}): Promise<void> {
  const container = findSpecContainer(pod, record.name)
  const grace = gracePeriod(pod, container, record, options)
  context.recorder.event(podReference(pod, record.name), 'Normal', 'Killing', options.message || `Stopping container ${record.name}`)
  const startedMs = context.clock.monotonicMs()
  const leftMs = () => Math.max(0, grace * 1000 - (context.clock.monotonicMs() - startedMs))
  if (container?.lifecycle?.preStop && grace > 0 && record.state === 'running') await preStop(context, { pod, container, record, podIP, grace, options })
  if (options.turn && leftMs() > 0) await upTo(context, leftMs(), options.turn)
  const usedSeconds = Math.floor((context.clock.monotonicMs() - startedMs) / 1000)
  const stopping = context.runtime.stopContainer(record.id, Math.max(minimumGraceSeconds, grace - usedSeconds))
  // The caller of an aborted stop stops the container again, with a shorter grace period.
  await (options.signal ? orAborted(stopping, options.signal) : stopping)
}

interface PreStopRequest {
  readonly pod: FrozenPod
  readonly container: FrozenContainer
  readonly record: ContainerRecord
  readonly podIP: string
  readonly grace: number
  readonly options: KillOptions
}

/** Runs the hook, at most for the grace period. The container is stopped even if the hook fails. */
async function preStop(context: KubeletContext, { pod, container, record, podIP, grace, options }: PreStopRequest): Promise<void> {
  const handler = container.lifecycle?.preStop
  if (!handler) return
  const reason = () => new Error('grace period ended before the preStop hook did')
  using limit = deadlineScope({ clock: context.clock, ms: grace * 1000, reason }, options.signal)
  const { signal } = limit
  try {
    await runLifecycleHandler(context, { pod, container, containerId: record.id, podIP, handler, signal })
  } catch (error) {
    // A hook that is cut off has not failed: its time was over.
    if (!signal.aborted) context.recorder.event(podReference(pod, record.name), 'Warning', 'FailedPreStopHook', 'PreStopHook failed')
    context.log.v(2).info('PreStop hook failed', { container: record.name, error: messageOf(error) })
  }
}

/** Waits for `turn`, but no longer than `ms`. */
async function upTo(context: KubeletContext, ms: number, turn: Promise<unknown>): Promise<void> {
  const over = new AbortController()
  await Promise.race([turn, context.clock.sleep(ms, over.signal).catch(() => {})])
  over.abort()
}

/**
 * Stops every container of the pod, then its sandboxes. All hooks run in parallel; a sidecar is stopped when the regular containers
 * and the sidecars after it have stopped, or when its grace period is over.
 */
export async function killPod(context: KubeletContext, pod: FrozenPod, status: PodRuntimeStatus, options: KillOptions = {}): Promise<void> {
  const podIP = sandboxIPs(status)[0] ?? context.config.nodeIPs[0] ?? ''
  const failures = await killContainers(context, pod, status, podIP, options)
  options.signal?.throwIfAborted()
  for (const sandbox of status.sandboxes) {
    if (sandbox.state !== 'SANDBOX_READY') continue
    await context.runtime.stopPodSandbox(sandbox.id).catch((error: unknown) => failures.push(failure('KillPodSandbox', pod.metadata.uid ?? '', error)))
  }
  if (failures.length > 0) throw new Error(failures.length === 1 ? failures[0] : `[${failures.join(', ')}]`)
}

/** Upstream's message about one failure in a step. */
function failure(action: 'KillContainer' | 'KillPodSandbox', target: string, error: unknown): string {
  return `failed to "${action}" for "${target}" with ${action}Error: ${JSON.stringify(rpcErrorText(error))}`
}

/** The containers only. Answers what went wrong. */
async function killContainers(context: KubeletContext, pod: FrozenPod, status: PodRuntimeStatus, podIP: string, options: KillOptions): Promise<string[]> {
  const sidecars = (pod.spec.initContainers ?? []).filter(isRestartableInitContainer).map((container) => container.name)
  const alive = status.containers.filter((record) => record.state === 'running' || record.state === 'unknown')
  const regular = new Set(pod.spec.containers.map(({ name }) => name))
  const failures: string[] = []
  const all: Promise<unknown>[] = []
  const watch = (name: string, killed: Promise<void>) => all.push(killed.catch((error: unknown) => failures.push(failure('KillContainer', name, error))))
  const stopped: Promise<void>[] = []
  for (const record of alive) {
    if (sidecars.includes(record.name)) continue
    const killed = killContainer(context, pod, record, podIP, options)
    watch(record.name, killed)
    if (regular.has(record.name)) stopped.push(killed)
  }
  for (const name of sidecars.toReversed()) {
    const record = alive.find((candidate) => candidate.name === name)
    if (!record) continue
    const killed = killContainer(context, pod, record, podIP, { ...options, turn: Promise.allSettled([...stopped]) })
    stopped.push(killed)
    watch(name, killed)
  }
  await Promise.all(all)
  return failures
}
