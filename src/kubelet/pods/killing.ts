/**
 * Stops containers and pods (L3): preStop, TERM, grace, KILL; sidecars after the regular containers, last started first stopped.
 * Upstream: kuberuntime_container.go killContainer, kuberuntime_termination_order.go (v1.36).
 */
import type { KubeletContext } from '../context.ts'
import { annotationKeys } from '../runtime/labels.ts'
import { type ContainerRecord, type PodRuntimeStatus, sandboxIPs } from '../runtime/podRuntimeStatus.ts'
import { type FrozenContainer, type FrozenPod, findSpecContainer, isRestartableInitContainer } from './containers.ts'
import { runLifecycleHandler } from './lifecycle.ts'
import type { KillReason } from './podActions.ts'
import { podReference } from './podReference.ts'

/** The runtime is never given less than this, so that TERM has a chance. */
const minimumGraceSeconds = 2

export interface KillOptions {
  readonly message?: string | undefined
  readonly reason?: KillReason | undefined
  /** Overrides the pod's own grace period: a deletion's, or 0 for "now". */
  readonly graceSeconds?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** How long a container may take: the override, the probe's own, the deletion's, the pod's. */
function gracePeriod(pod: FrozenPod, container: FrozenContainer | undefined, record: ContainerRecord, options: KillOptions): number {
  if (options.graceSeconds !== undefined) return options.graceSeconds
  const probe = options.reason === 'LivenessProbe' ? container?.livenessProbe : options.reason === 'StartupProbe' ? container?.startupProbe : undefined
  const recorded = record.status.annotations[annotationKeys.podTerminationGracePeriod]
  return (
    probe?.terminationGracePeriodSeconds ??
    pod.metadata.deletionGracePeriodSeconds ??
    pod.spec.terminationGracePeriodSeconds ??
    (recorded === undefined ? 30 : Number(recorded))
  )
}

/** Stops one container. The hook and the process share the grace period. */
export async function killContainer(context: KubeletContext, pod: FrozenPod, record: ContainerRecord, podIP: string, options: KillOptions = {}): Promise<void> {
  const container = findSpecContainer(pod, record.name)
  const grace = gracePeriod(pod, container, record, options)
  const message = options.message ?? `Stopping container ${record.name}`
  context.recorder.event(podReference(pod, record.name), 'Normal', 'Killing', message)
  const startedMs = context.clock.monotonicMs()
  const hook = container?.lifecycle?.preStop
  if (hook && container && grace > 0 && record.state === 'running') {
    const deadline = new AbortController()
    const timer = context.clock.timer(grace * 1000, () => deadline.abort(new Error('grace period ended before the preStop hook did')))
    const signal = options.signal ? AbortSignal.any([deadline.signal, options.signal]) : deadline.signal
    try {
      await runLifecycleHandler(context, container, record.id, podIP, hook, signal)
    } catch (error) {
      context.recorder.event(podReference(pod, record.name), 'Warning', 'FailedPreStopHook', 'PreStopHook failed')
      context.log.v(2).info('PreStop hook failed', { container: record.name, error: error instanceof Error ? error.message : String(error) })
    } finally {
      timer.cancel()
    }
  }
  const usedSeconds = Math.floor((context.clock.monotonicMs() - startedMs) / 1000)
  const left = options.graceSeconds === 0 ? 0 : Math.max(minimumGraceSeconds, grace - usedSeconds)
  await orAborted(context.runtime.stopContainer(record.id, grace === 0 ? 0 : left), options.signal)
}

/** Stops waiting when aborted: whoever aborts stops the container again, with less patience. */
async function orAborted(stopping: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (!signal) return stopping
  signal.throwIfAborted()
  let onAbort = () => {}
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
  })
  // Nobody may be left to hear how it ended.
  stopping.catch(() => {})
  try {
    await Promise.race([stopping, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/**
 * Stops every container of the pod, then its sandboxes. Regular containers go together; sidecars follow one after another in reverse order
 * of their start, sharing what is left of the grace period.
 */
export async function killPod(context: KubeletContext, pod: FrozenPod, status: PodRuntimeStatus, options: KillOptions = {}): Promise<void> {
  const sidecars = (pod.spec.initContainers ?? []).filter(isRestartableInitContainer).map((container) => container.name)
  const podIP = sandboxIPs(status)[0] ?? context.config.nodeIPs[0] ?? ''
  const alive = status.containers.filter((record) => record.state === 'running' || record.state === 'unknown')
  const startedMs = context.clock.monotonicMs()
  const total = options.graceSeconds ?? pod.metadata.deletionGracePeriodSeconds ?? pod.spec.terminationGracePeriodSeconds ?? 30
  await Promise.all(alive.filter((record) => !sidecars.includes(record.name)).map((record) => killContainer(context, pod, record, podIP, options)))
  for (const name of sidecars.toReversed()) {
    const record = alive.find((candidate) => candidate.name === name)
    if (!record) continue
    const left = Math.max(0, total - Math.floor((context.clock.monotonicMs() - startedMs) / 1000))
    await killContainer(context, pod, record, podIP, { ...options, graceSeconds: total === 0 ? 0 : Math.max(minimumGraceSeconds, left) })
  }
  for (const sandbox of status.sandboxes) if (sandbox.state === 'SANDBOX_READY') await context.runtime.stopPodSandbox(sandbox.id)
}
