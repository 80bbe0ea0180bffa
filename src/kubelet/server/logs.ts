/** GET /containerLogs (L3): which container's log is meant, and the log itself. Upstream: kubelet/server/server.go getContainerLogs, kubelet_pods.go (v1.36). */
import type { PodStatus } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { parseTime } from '#base/time'
import type { KubeletView } from '../kubelet.ts'
import { findSpecContainer } from '../pods/containers.ts'
import type { LogOptions } from '../runtime/runtimeService.ts'
import { HttpError } from './httpError.ts'

/** The id of the run whose log is asked for. @throws HttpError with upstream's explanation. */
export function logContainerId(podName: string, status: Frozen<PodStatus>, container: string, previous: boolean): string {
  const all = [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? []), ...(status.ephemeralContainerStatuses ?? [])]
  const found = all.find((candidate) => candidate.name === container)
  const refuse = (message: string) => new HttpError(400, message)
  if (!found) throw refuse(`container "${container}" in pod "${podName}" is not available`)
  const last = found.lastState?.terminated
  if (previous) {
    if (!last?.containerID) throw refuse(`previous terminated container "${container}" in pod "${podName}" not found`)
    return bare(last.containerID)
  }
  if (found.state?.running) return bare(found.containerID ?? '')
  const ended = found.state?.terminated
  if (ended?.containerID) return bare(ended.containerID)
  if (last?.containerID) return bare(last.containerID)
  if (ended || last) throw refuse(`container "${container}" in pod "${podName}" is terminated`)
  const reason = found.state?.waiting?.reason
  if (reason === 'ErrImagePull') throw refuse(`container "${container}" in pod "${podName}" is waiting to start: image can't be pulled`)
  if (reason === 'ImagePullBackOff') throw refuse(`container "${container}" in pod "${podName}" is waiting to start: trying and failing to pull image`)
  throw refuse(`container "${container}" in pod "${podName}" is waiting to start: ${reason ?? 'no logs yet'}`)
}

const bare = (id: string) => id.slice(id.indexOf('://') + 3)

/** PodLogOptions out of the query. */
export function logOptions(query: URLSearchParams, nowMs: number): LogOptions {
  const number = (name: string) => {
    const text = query.get(name)
    if (text === null || text === '') return undefined
    if (!/^\d+$/.test(text)) throw new HttpError(400, `unable to decode the request: ${name} must be a number`)
    return Number(text)
  }
  const seconds = number('sinceSeconds')
  const time = query.get('sinceTime')
  const sinceMs = seconds !== undefined ? nowMs - seconds * 1000 : time ? parseTime(time) : undefined
  const stream = query.get('stream')
  return {
    follow: query.get('follow') === 'true',
    timestamps: query.get('timestamps') === 'true',
    tailLines: number('tailLines'),
    limitBytes: number('limitBytes'),
    sinceMs,
    ...(stream === 'Stdout' || stream === 'Stderr' ? { stream } : {}),
  }
}

/** Answers a request for a container's log, whole, its tail, or followed. */
export async function containerLog(
  view: KubeletView,
  nowMs: number,
  [namespace = '', name = '', container = '']: readonly string[],
  query: URLSearchParams,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const pod = view.pod(namespace, name)
  if (!pod) throw new HttpError(404, `pod does not exist`)
  if (!findSpecContainer(pod, container)) throw new HttpError(404, `container "${container}" not found in pod "${name}"`)
  const id = logContainerId(name, view.podStatus(pod.metadata.uid ?? '') ?? pod.status, container, query.get('previous') === 'true')
  const status = await view.runtime.containerStatus(id)
  if (!status) throw new HttpError(400, `unable to retrieve container logs for ${view.runtime.name}://${id}`)
  return view.runtime.logs(status, logOptions(query, nowMs), signal)
}
