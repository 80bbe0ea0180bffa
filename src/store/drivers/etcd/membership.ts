/** Refuses endpoints that lead to another cluster (L2, pure): writes there would be lost, and its revisions mean nothing here. */
import { GrpcError } from '#grpc/grpcError'

export interface Introduction {
  readonly url: string
  /** Decimal; the number has 64 bits. */
  readonly clusterId: string
}

/** An outage to callers, so that other endpoints are used. */
export class OtherClusterError extends GrpcError {
  constructor(known: Introduction, other: Introduction) {
    const where = known.url === other.url ? `etcd at ${other.url}` : `etcd at ${other.url} and etcd at ${known.url}`
    const what = known.url === other.url ? 'was replaced by another cluster' : 'are members of different clusters'
    super('UNAVAILABLE', `${where} ${what} (${hexadecimal(other.clusterId)}, not ${hexadecimal(known.clusterId)})`)
    this.name = 'OtherClusterError'
  }
}

/** As etcdctl prints it. */
const hexadecimal = (id: string) => BigInt(id || '0').toString(16)

/** Accepts the cluster of the first endpoint that introduces itself, and no other. The result throws OtherClusterError. */
export function sameCluster(): (introduction: Introduction) => void {
  let known: Introduction | undefined
  return (introduction) => {
    known ??= introduction
    if (known.clusterId !== introduction.clusterId) throw new OtherClusterError(known, introduction)
  }
}
