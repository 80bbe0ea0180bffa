/** Carries out one probe (L3): exec, httpGet, tcpSocket or grpc. Upstream: kubelet/prober/prober.go, pkg/probe (v1.36). */
import type { Probe } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { deadlineScope } from '#base/abortScope'
import { bareMap } from '#base/bareMap'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import { kubernetesVersion } from '#base/version'
import { GrpcError } from '#grpc/grpcError'
import { containerPort } from '../core/containerPort.ts'
import type { FrozenContainer } from '../core/containers.ts'
import type { KubeletContext } from '../core/context.ts'
import { expandWords } from '../core/expansion.ts'
import { httpRequest } from '../core/httpRequest.ts'
import { probeGrpc } from './grpcProbe.ts'
import type { ProbeKind } from './probeState.ts'

export interface ProbeResult {
  /** Warning counts as success and is recorded as an event; Unknown is no result of the container. */
  readonly outcome: 'Success' | 'Warning' | 'Failure' | 'Unknown'
  readonly output: string
}

export interface ProbeTarget {
  readonly kind: ProbeKind
  readonly container: FrozenContainer
  readonly containerId: string
  readonly podIP: string
}

/** The number of tries before a probe that cannot be carried out is reported. */
const attempts = 3
const maxOutputBytes = 10 * 1024

const failure = (output: string): ProbeResult => ({ outcome: 'Failure', output })
const success = (output = ''): ProbeResult => ({ outcome: 'Success', output })

/** Runs the probe within its timeout. Never rejects: a negative answer is a failure, an error of the kubelet or runtime is unknown. */
export async function runProbe(context: KubeletContext, probe: Frozen<Probe>, target: ProbeTarget): Promise<ProbeResult> {
  let last = failure('')
  for (let attempt = 0; attempt < attempts; attempt++) {
    try {
      return await probeOnce(context, probe, target)
    } catch (error) {
      last = { outcome: 'Unknown', output: messageOf(error) }
    }
  }
  return last
}

/** @throws Error when the probe could not be carried out */
async function probeOnce(context: KubeletContext, probe: Frozen<Probe>, target: ProbeTarget): Promise<ProbeResult> {
  const timeoutSeconds = probe.timeoutSeconds ?? 1
  const timeoutMs = timeoutSeconds * 1000
  const { runtime, host, clock } = context
  if (runtime.probe) {
    const { passes, output } = await runtime.probe(target.containerId, target.kind)
    return passes ? success(output) : failure(output)
  }
  if (!host || probe.exec) return execProbe(context, probe, target, timeoutSeconds)
  if (probe.httpGet) return httpProbe({ host, clock, timeoutMs }, probe.httpGet, target)
  if (probe.tcpSocket) return tcpProbe({ host, clock, timeoutMs }, probe.tcpSocket, target)
  if (!probe.grpc) throw new Error(`missing probe handler for container ${target.container.name}`)
  const { serves, output } = await probeGrpc(target.podIP, probe.grpc.port, probe.grpc.service ?? '', timeoutMs)
  return serves ? success(output) : failure(output)
}

async function execProbe(context: KubeletContext, probe: Frozen<Probe>, target: ProbeTarget, timeoutSeconds: number): Promise<ProbeResult> {
  // Only the variables with values in the spec are known here.
  const named = new Map((target.container.env ?? []).map(({ name, value }) => [name, value ?? '']))
  const command = expandWords(probe.exec?.command ?? [], (name) => named.get(name))
  try {
    const { stdout, stderr, exitCode } = await context.runtime.execSync(target.containerId, command, timeoutSeconds)
    const output = Buffer.concat([stdout, stderr]).subarray(0, maxOutputBytes).toString()
    return exitCode === 0 ? success(output) : failure(output)
  } catch (error) {
    if (error instanceof GrpcError && error.code === 'DEADLINE_EXCEEDED') return failure(`command ${JSON.stringify(command.join(' '))} timed out`)
    throw error
  }
}

interface NetworkProbe {
  readonly host: NonNullable<KubeletContext['host']>
  readonly clock: Clock
  readonly timeoutMs: number
}

async function httpProbe({ host, clock, timeoutMs }: NetworkProbe, action: NonNullable<Frozen<Probe>['httpGet']>, target: ProbeTarget): Promise<ProbeResult> {
  const port = containerPort(action.port, target.container)
  const { host: named, path: asked, scheme, httpHeaders } = action
  const path = `/${(asked ?? '').replace(/^\//, '')}`
  const request = {
    host: named || target.podIP,
    port,
    path,
    https: scheme === 'HTTPS',
    headers: httpHeaders ?? [],
    userAgent: `kube-probe/${kubernetesVersion}`,
  }
  using limit = deadlineScope({ clock, ms: timeoutMs })
  try {
    const { status, body } = await httpRequest(host, request, limit.signal)
    if (status < 200 || status >= 400) return failure(`HTTP probe failed with statuscode: ${status}`)
    return status < 300 ? success(body) : { outcome: 'Warning', output: `Probe terminated redirects, Response body: ${body}` }
  } catch (error) {
    const address = `${request.host.includes(':') ? `[${request.host}]` : request.host}:${port}`
    const cause = isTimeout(error) ? 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)' : causeOf(error, address)
    return failure(`Get "${request.https ? 'https' : 'http'}://${address}${path}": ${cause}`)
  }
}

async function tcpProbe({ host, clock, timeoutMs }: NetworkProbe, action: NonNullable<Frozen<Probe>['tcpSocket']>, target: ProbeTarget): Promise<ProbeResult> {
  const port = containerPort(action.port, target.container)
  const name = action.host || target.podIP
  using limit = deadlineScope({ clock, ms: timeoutMs })
  try {
    const socket = await host.dial(name, port, limit.signal)
    socket.on('error', () => {})
    socket.destroy()
    return success()
  } catch (error) {
    const address = `${name.includes(':') ? `[${name}]` : name}:${port}`
    return failure(isTimeout(error) ? `dial tcp ${address}: i/o timeout` : causeOf(error, address))
  }
}

const isTimeout = (error: unknown) => error instanceof Error && (error.name === 'TimeoutError' || error.name === 'AbortError')

const dialErrors: Readonly<Record<string, string>> = bareMap({
  ECONNREFUSED: 'connect: connection refused',
  EHOSTUNREACH: 'connect: no route to host',
  ENETUNREACH: 'connect: network is unreachable',
  ETIMEDOUT: 'i/o timeout',
})

/** Go's words for what went wrong, which people and tools look for. */
function causeOf(error: unknown, address: string): string {
  const code = (error as { code?: string } | undefined)?.code ?? ''
  const known = dialErrors[code]
  if (known) return `dial tcp ${address}: ${known}`
  if (code === 'ECONNRESET') return 'read: connection reset by peer'
  return messageOf(error)
}
