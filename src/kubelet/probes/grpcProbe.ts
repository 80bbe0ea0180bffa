/**
 * The grpc probe (L3): grpc.health.v1.Health/Check by hand, a string in field 1 out, an enum in field 1 back, where 1 is SERVING.
 * The library is loaded by the first such probe: it would be a fifth of a server's start, and simulated nodes never probe.
 * Upstream: pkg/probe/grpc/grpc.go (v1.36).
 */
import { formatElapsed } from '../images/imageManager.ts'

export interface GrpcProbeAnswer {
  readonly serves: boolean
  readonly output: string
}

const statusNames: Readonly<Record<number, string>> = { 0: 'UNKNOWN', 1: 'SERVING', 2: 'NOT_SERVING', 3: 'SERVICE_UNKNOWN' }

/** @param deadlineMs when the answer comes too late, in milliseconds since the epoch. Never rejects. */
export async function probeGrpc(host: string, port: number, service: string, timeoutMs: number, deadlineMs: number): Promise<GrpcProbeAnswer> {
  const { Client, credentials, Metadata, status } = await import('@grpc/grpc-js')
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`
  const client = new Client(address, credentials.createInsecure(), { 'grpc.primary_user_agent': 'kube-probe/1.36' })
  const failed = (output: string): GrpcProbeAnswer => ({ serves: false, output })
  const request = service === '' ? Buffer.alloc(0) : Buffer.concat([Buffer.from([0x0a, ...varint(Buffer.byteLength(service))]), Buffer.from(service)])
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      '/grpc.health.v1.Health/Check',
      (value: Buffer) => value,
      (value: Buffer) => value,
      request,
      new Metadata(),
      { deadline: deadlineMs },
      (error, response) => {
        client.close()
        if (!error) resolve(healthOf(response))
        else if (error.code === status.UNIMPLEMENTED)
          resolve(failed(`error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${error.details}`))
        else if (error.code === status.DEADLINE_EXCEEDED) resolve(failed(`timeout: health rpc did not complete within ${formatElapsed(timeoutMs)}`))
        else if (error.code === status.UNAVAILABLE) resolve(failed(`error: failed to connect service at "${address}": ${error.details}`))
        else resolve(failed(`error: health rpc probe failed: rpc error: code = ${status[error.code]} desc = ${error.details}`))
      },
    )
  })
}

function healthOf(response: Buffer | undefined): GrpcProbeAnswer {
  const value = response?.[0] === 0x08 ? (response[1] ?? 0) : 0
  return value === 1
    ? { serves: true, output: 'service healthy' }
    : { serves: false, output: `service unhealthy (responded with "${statusNames[value] ?? value}")` }
}

/** A length as protobuf writes it: seven bits a byte, the lowest first. */
function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)]
}
