/** GET /containerLogs (L3): selects the container and streams its log. Upstream: kubelet/server/server.go getContainerLogs, kubelet_pods.go (v1.36). */
import type { PodStatus } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { parseTime } from '#base/time'
import { findSpecContainer } from '../core/containers.ts'
import type { KubeletView } from '../core/kubeletView.ts'
import type { LogOptions } from '../core/runtimeService.ts'
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

const undecodable = () => new HttpError(400, '{"message": "Unable to decode query."}')
const impossible = () => new HttpError(422, '{"message": "Invalid request."}')

/** PodLogOptions out of the query. @throws HttpError 400 for what is no such option, 422 for values that cannot be */
export function logOptions(query: URLSearchParams, nowMs: number): LogOptions {
  const number = (name: string) => {
    const text = query.get(name)
    if (text === null || text === '') return undefined
    if (!/^-?\d+$/.test(text)) throw undecodable()
    return Number(text)
  }
  const flag = (name: string) => {
    const text = query.get(name)
    return text !== null && !['', '0', 'false'].includes(text.toLowerCase())
  }
  const [seconds, limitBytes] = [number('sinceSeconds'), number('limitBytes')]
  // An old form of clients; `all` equals no limit.
  const tail = query.get('tail')
  const tailLines = tail ? (tail === 'all' ? undefined : Number(tail)) : number('tailLines')
  const time = query.get('sinceTime')
  const sinceTimeMs = time ? parseTime(time) : undefined
  if (time && sinceTimeMs === undefined) throw undecodable()
  const stream = query.get('stream') || 'All'
  const isImpossible =
    Number.isNaN(tailLines ?? 0) ||
    (tailLines ?? 0) < 0 ||
    (limitBytes ?? 1) < 1 ||
    (seconds ?? 1) < 1 ||
    (seconds !== undefined && sinceTimeMs !== undefined) ||
    !['All', 'Stdout', 'Stderr'].includes(stream) ||
    (stream !== 'All' && tailLines !== undefined)
  if (isImpossible) throw impossible()
  return {
    follow: flag('follow'),
    timestamps: flag('timestamps'),
    tailLines,
    limitBytes,
    sinceMs: seconds === undefined ? sinceTimeMs : nowMs - seconds * 1000,
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
  const options = logOptions(query, nowMs)
  const pod = view.pod(namespace, name)
  if (!pod) throw new HttpError(404, `pod "${name}" does not exist`)
  if (!findSpecContainer(pod, container)) throw new HttpError(404, `container "${container}" not found in pod "${name}"`)
  const id = logContainerId(name, view.podStatus(pod.metadata.uid ?? '') ?? pod.status, container, query.get('previous') === 'true')
  const status = await view.runtime.containerStatus(id)
  if (!status) throw new HttpError(400, `unable to retrieve container logs for ${view.runtime.name}://${id}`)
  return view.runtime.logs(status, options, signal)
}
