/** Carries out one probe (L3): exec, httpGet, tcpSocket or grpc. Upstream: kubelet/prober/prober.go, kubelet/probe (v1.36). */
import type { Probe } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import type { KubeletContext } from '../context.ts'
import type { FrozenContainer } from '../pods/containers.ts'
import { containerPort } from '../pods/lifecycle.ts'
import { httpRequest } from './http.ts'
import type { ProbeKind, ProbeOutcome } from './probeState.ts'

export interface ProbeResult {
  readonly outcome: ProbeOutcome
  readonly output: string
}

export interface ProbeTarget {
  readonly kind: ProbeKind
  readonly container: FrozenContainer
  readonly containerId: string
  readonly podIP: string
}

const failure = (output: string): ProbeResult => ({ outcome: 'Failure', output })
const success = (output = ''): ProbeResult => ({ outcome: 'Success', output })

/** Runs the probe within its timeout. Never rejects: what goes wrong is a failure with upstream's words. */
export async function runProbe(context: KubeletContext, probe: Frozen<Probe>, target: ProbeTarget): Promise<ProbeResult> {
  const timeoutSeconds = probe.timeoutSeconds ?? 1
  try {
    if (context.runtime.probe) {
      const { passes, output } = await context.runtime.probe(target.containerId, target.kind)
      return passes ? success(output) : failure(output)
    }
    if (!context.host || probe.exec) return await execProbe(context, probe, target, timeoutSeconds)
    const signal = AbortSignal.timeout(timeoutSeconds * 1000)
    if (probe.httpGet) return await httpProbe(context.host, probe.httpGet, target, signal)
    if (probe.tcpSocket) {
      const socket = await context.host.dial(probe.tcpSocket.host || target.podIP, containerPort(probe.tcpSocket.port, target.container), signal)
      socket.destroy()
      return success()
    }
    if (probe.grpc) return await grpcProbe(target.podIP, probe.grpc.port, probe.grpc.service ?? '', timeoutSeconds)
    return success()
  } catch (error) {
    return failure(describe(error, probe, target))
  }
}

async function execProbe(context: KubeletContext, probe: Frozen<Probe>, target: ProbeTarget, timeoutSeconds: number): Promise<ProbeResult> {
  const result = await context.runtime.execSync(target.containerId, probe.exec?.command ?? [], timeoutSeconds)
  const output = Buffer.concat([result.stdout, result.stderr])
    .subarray(0, 10 * 1024)
    .toString()
  return result.exitCode === 0 ? success(output) : failure(output)
}

async function httpProbe(
  host: NonNullable<KubeletContext['host']>,
  action: NonNullable<Frozen<Probe>['httpGet']>,
  target: ProbeTarget,
  signal: AbortSignal,
): Promise<ProbeResult> {
  const response = await httpRequest(
    host,
    {
      host: action.host || target.podIP,
      port: containerPort(action.port, target.container),
      path: action.path || '/',
      https: action.scheme === 'HTTPS',
      headers: action.httpHeaders ?? [],
    },
    signal,
  )
  return response.status >= 200 && response.status < 400 ? success(response.body) : failure(`HTTP probe failed with statuscode: ${response.status}`)
}

function describe(error: unknown, probe: Frozen<Probe>, { podIP, container }: ProbeTarget): string {
  const message = error instanceof Error ? error.message : String(error)
  const refused = /ECONNREFUSED/.test(message)
  const cause = refused ? 'connect: connection refused' : message
  try {
    if (probe.tcpSocket) return `dial tcp ${probe.tcpSocket.host || podIP}:${containerPort(probe.tcpSocket.port, container)}: ${cause}`
    if (!probe.httpGet) return message
    const address = `${probe.httpGet.host || podIP}:${containerPort(probe.httpGet.port, container)}`
    const url = `${(probe.httpGet.scheme ?? 'HTTP').toLowerCase()}://${address}${probe.httpGet.path || '/'}`
    const timedOut = error instanceof Error && (error.name === 'TimeoutError' || error.name === 'AbortError')
    return `Get "${url}": ${timedOut ? 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)' : `dial tcp ${address}: ${cause}`}`
  } catch {
    // The port has no number: say that.
    return message
  }
}

/**
 * grpc.health.v1.Health/Check by hand: a string in field 1 out, an enum in field 1 back, where 1 is SERVING. The library is loaded by the first
 * such probe: it would be a fifth of a server's start, and simulated nodes never probe.
 */
async function grpcProbe(host: string, port: number, service: string, timeoutSeconds: number): Promise<ProbeResult> {
  const { Client, credentials, Metadata } = await import('@grpc/grpc-js')
  const client = new Client(`${host.includes(':') ? `[${host}]` : host}:${port}`, credentials.createInsecure())
  const request = service === '' ? Buffer.alloc(0) : Buffer.concat([Buffer.from([0x0a, ...varint(Buffer.byteLength(service))]), Buffer.from(service)])
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      '/grpc.health.v1.Health/Check',
      (value: Buffer) => value,
      (value: Buffer) => value,
      request,
      new Metadata(),
      { deadline: Date.now() + timeoutSeconds * 1000 },
      (error, response) => {
        client.close()
        if (error) resolve(failure(`error: health rpc failed: ${error.details || error.message}`))
        else resolve(response?.[0] === 0x08 && response[1] === 1 ? success('service healthy') : failure('service unhealthy (responded with "NOT_SERVING")'))
      },
    )
  })
}

/** A length as protobuf writes it: seven bits a byte, the lowest first. */
function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)]
}
