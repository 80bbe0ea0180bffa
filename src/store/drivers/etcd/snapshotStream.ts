/** The snapshot of a member of etcd, as it sends it (L2). Upstream: etcd client/v3 maintenance.go (Snapshot). */
import { connectGrpc } from '#grpc/grpcConnection'
import type { GrpcTls } from '#grpc/grpcSession'
import { methodOf } from './methods.ts'

/** A member that answers nothing for so long is given up. */
const keepAlive = { pauseMs: 6_000, timeoutMs: 10_000 }

/** @param target see connectGrpc. The pieces of the file with its trailer. @throws GrpcError; the signal's reason when it fires */
export async function* snapshotOf(target: string, tls: GrpcTls | undefined, signal: AbortSignal): AsyncGenerator<Buffer> {
  const connection = connectGrpc(target, { keepAlive, ...(tls ? { tls } : {}) })
  const { path, request, response } = methodOf('Maintenance.Snapshot')
  try {
    for await (const message of connection.stream(path, request.encode({}), { signal })) yield (response.decode(message) as { readonly blob: Buffer }).blob
  } finally {
    connection.close()
  }
  signal.throwIfAborted()
}
