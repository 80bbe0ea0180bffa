/** What the services of etcd's API share (L2). */
import type { Clock } from '#base/clock'
import type { Metrics } from '#base/metrics'
import type { LocalStore } from '../store.ts'
import type { Alarms } from './alarms.ts'
import type { AuthStore } from './auth/authStore.ts'
import type { Passwords } from './auth/passwords.ts'
import type { ServeMetrics } from './serveMetrics.ts'

/** The release of etcd whose API this is. Clients choose features by it: the progress of watches is sound from 3.5.13 on. */
export const etcdVersion = '3.6.8'

export interface EtcdApiOptions {
  readonly store: LocalStore
  readonly clock: Clock
  /** As in --name. */
  readonly name: string
  readonly clientUrls: readonly string[]
  readonly memberId: number
  readonly clusterId: number
  readonly maxOperations: number
  /** Most bytes of keys and values in one request. */
  readonly maxRequestBytes: number
  readonly quotaBytes: number
  /** The folder for the file of a snapshot while it is sent. */
  readonly temporaryFolder: string
  /** Time between the progress notifications of an idle watch that asked for them. */
  readonly progressNotifyMs: number
  readonly passwords: Passwords
  /** Time from the last use of a token to its end. */
  readonly tokenTtlMs: number
  /** Whether the common name of a client's certificate is the name of a user. */
  readonly namesInCertificates: boolean
  /** Absent: nothing is counted. */
  readonly metrics?: Metrics | undefined
}

export interface ResponseHeader {
  readonly clusterId: number
  readonly memberId: number
  readonly revision: number
  readonly raftTerm: number
}

/** What the services share. */
export interface EtcdApi extends Omit<EtcdApiOptions, 'metrics'> {
  readonly metrics: ServeMetrics
  readonly alarms: Alarms
  readonly auth: AuthStore
  /** @param revision of the answer; absent: the store's newest */
  header(revision?: number): ResponseHeader
}
