/**
 * What an administrator asks of an etcd cluster (L2): its members and their state, changes of membership, and defragmentation of one member.
 * Upstream: etcd client/v3 cluster.go, maintenance.go.
 */
import { connectGrpc, type GrpcConnection, type GrpcConnectionOptions } from '#grpc/grpcConnection'
import { GrpcError } from '#grpc/grpcError'
import { keepAlive, targetOf } from './member.ts'
import { methodOf } from './methods.ts'

export interface EtcdMember {
  /** Decimal: it uses all 64 bits. */
  readonly id: string
  /** Empty until the member has been started. */
  readonly name: string
  readonly peerUrls: readonly string[]
  readonly clientUrls: readonly string[]
  /** It receives the log, and has no vote. */
  readonly isLearner: boolean
}

export interface EtcdMemberStatus {
  readonly version: string
  /** Size of the database file. */
  readonly dbSize: number
  /** What of it holds data; the rest is given back by defragmentation. */
  readonly dbSizeInUse: number
  readonly isLeader: boolean
  readonly isLearner: boolean
  readonly errors: readonly string[]
}

export interface EtcdAdministration {
  /** The members that the cluster knows. @throws GrpcError of the last endpoint that was asked */
  members(): Promise<readonly EtcdMember[]>
  /** Adds a learner. @returns all members, among them the new one without a name */
  addLearner(peerUrl: string): Promise<readonly EtcdMember[]>
  promote(id: string): Promise<void>
  remove(id: string): Promise<void>
  /** The state of the member at one of the endpoints. */
  status(url: string): Promise<EtcdMemberStatus>
  /** Hands the lead over to another member. @param leaderUrl of the member that leads: only it can */
  moveLeader(leaderUrl: string, id: string): Promise<void>
  /** Rewrites the member's database without its free pages. The member answers nothing meanwhile. */
  defragment(url: string): Promise<void>
  close(): void
}

const callTimeoutMs = 5_000
/** A member with the largest database that etcd supports, on a slow disk. */
const defragmentTimeoutMs = 300_000

type Method = `${'Cluster' | 'Maintenance'}.${string}`

/** @param urls `https://HOST:PORT` of members */
export function createEtcdAdministration(urls: readonly string[], tls: GrpcConnectionOptions['tls']): EtcdAdministration {
  const connections = new Map<string, GrpcConnection>()
  const connectionTo = (url: string) => {
    const { target, isSecure } = targetOf(url)
    const found = connections.get(url) ?? connectGrpc(target, { keepAlive, ...(isSecure ? { tls: tls ?? {} } : {}) })
    connections.set(url, found)
    return found
  }
  const callAt = async <Response>(url: string, name: Method, request: object, timeoutMs = callTimeoutMs): Promise<Response> => {
    const method = methodOf(name)
    return method.response.decode(await connectionTo(url).unary(method.path, method.request.encode(request), { timeoutMs })) as Response
  }
  /** At the first endpoint that answers. A change is not repeated once it may have been carried out. */
  const call = async <Response>(name: Method, request: object, isRepeatable = false): Promise<Response> => {
    let failure: unknown
    for (const url of urls) {
      try {
        return await callAt<Response>(url, name, request)
      } catch (error) {
        failure = error
        if (!isElsewhere(error, isRepeatable)) throw error
      }
    }
    throw failure
  }
  return {
    members: async () => (await call<{ members: EtcdMember[] }>('Cluster.MemberList', {}, true)).members,
    addLearner: async (peerUrl) => (await call<{ members: EtcdMember[] }>('Cluster.MemberAdd', { peerUrls: [peerUrl], isLearner: true })).members,
    promote: (id) => call('Cluster.MemberPromote', { id }),
    remove: (id) => call('Cluster.MemberRemove', { id }),
    status: async (url) => {
      type Answer = Omit<EtcdMemberStatus, 'isLeader'> & { readonly header: { readonly memberId: number }; readonly leader: number }
      const { header, leader, version, dbSize, dbSizeInUse, isLearner, errors } = await callAt<Answer>(url, 'Maintenance.Status', {})
      return { version, dbSize, dbSizeInUse, isLearner, errors, isLeader: header.memberId === leader }
    },
    moveLeader: (leaderUrl, targetId) => callAt(leaderUrl, 'Maintenance.MoveLeader', { targetId }),
    defragment: (url) => callAt(url, 'Maintenance.Defragment', {}, defragmentTimeoutMs),
    close: () => {
      for (const connection of connections.values()) connection.close()
    },
  }
}

/** Whether another member may answer: this one is not reached, or is a learner, which serves no changes. */
function isElsewhere(error: unknown, isRepeatable: boolean): boolean {
  if (!(error instanceof GrpcError)) return false
  if (error.message.includes('not supported for learner')) return true
  return (error.code === 'UNAVAILABLE' || error.code === 'DEADLINE_EXCEEDED') && (isRepeatable || error.isUnsent)
}
