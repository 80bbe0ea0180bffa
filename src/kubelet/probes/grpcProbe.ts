/**
 * The grpc probe (L3): grpc.health.v1.Health/Check by hand, a string in field 1 out, an enum in field 1 back, where 1 is SERVING.
 * What speaks gRPC is loaded by the first such probe: simulated nodes never probe.
 * Upstream: pkg/probe/grpc/grpc.go (v1.36).
 */
import { kubernetesVersion } from '#base/version'
import { formatElapsed } from '../core/formatElapsed.ts'

export interface GrpcProbeAnswer {
  readonly serves: boolean
  readonly output: string
}

/** Of grpc-go. */
const maxMessageBytes = 4 << 20
const statusNames: Readonly<Record<number, string>> = { 0: 'UNKNOWN', 1: 'SERVING', 2: 'NOT_SERVING', 3: 'SERVICE_UNKNOWN' }

/** Never rejects. @param timeoutMs the longest wait for the answer */
export async function probeGrpc(host: string, port: number, service: string, timeoutMs: number): Promise<GrpcProbeAnswer> {
  const { connectGrpc } = await import('#grpc/grpcConnection')
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`
  const request = service === '' ? Buffer.alloc(0) : Buffer.concat([Buffer.from([0x0a, ...varint(Buffer.byteLength(service))]), Buffer.from(service)])
  const connection = connectGrpc(address, { userAgent: `kube-probe/${kubernetesVersion}`, maxMessageBytes })
  try {
    return healthOf(await connection.unary('/grpc.health.v1.Health/Check', request, { timeoutMs }))
  } catch (error) {
    return failureOf(error, address, timeoutMs)
  } finally {
    connection.close()
  }
}

function failureOf(error: unknown, address: string, timeoutMs: number): GrpcProbeAnswer {
  const { code, message } = error as { code?: string; message: string }
  const failed = (output: string): GrpcProbeAnswer => ({ serves: false, output })
  if (code === 'UNIMPLEMENTED') return failed(`error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${message}`)
  if (code === 'DEADLINE_EXCEEDED') return failed(`timeout: health rpc did not complete within ${formatElapsed(timeoutMs)}`)
  if (code === 'UNAVAILABLE') return failed(`error: failed to connect service at "${address}": ${message}`)
  return failed(`error: health rpc probe failed: rpc error: code = ${code} desc = ${message}`)
}

function healthOf(response: Buffer): GrpcProbeAnswer {
  const value = response[0] === 0x08 ? (response[1] ?? 0) : 0
  return value === 1
    ? { serves: true, output: 'service healthy' }
    : { serves: false, output: `service unhealthy (responded with "${statusNames[value] ?? value}")` }
}

/** A length as protobuf writes it: seven bits a byte, the lowest first. */
function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)]
}
