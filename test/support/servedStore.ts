/** The embedded store with a file of its own, served as an etcd server on loopback, for tests. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { noLog } from '#base/log'
import { serveGrpc } from '#grpc/grpcServer'
import { passwordThread } from '#main/etcd/passwordThread'
import { openLmdbStore } from '#store/drivers/lmdb'
import { createMemoryStore } from '#store/drivers/memory'
import { etcdServices } from '#store/serve/etcdApi'
import type { LocalStore } from '#store/store'
import { realClock } from '#testing/realClock'

export interface ServedStore {
  readonly store: LocalStore
  /** HOST:PORT */
  readonly endpoint: string
  readonly folder: string
  close(): Promise<void>
}

/** @param given the folder of a store that is there; a new one otherwise @param quotaBytes of a file; 0: no limit */
export async function serveStore(kind: 'file' | 'memory' = 'file', given?: string, quotaBytes = 0): Promise<ServedStore> {
  const folder = given ?? (await mkdtemp(join(tmpdir(), 'skiff-store-')))
  const store =
    kind === 'file'
      ? await openLmdbStore({ path: join(folder, 'data.mdb'), clock: realClock, log: noLog, ...(quotaBytes > 0 ? { quotaBytes } : {}) })
      : createMemoryStore({ clock: realClock })
  const ids = { name: 'test', clientUrls: ['http://test'], memberId: 1, clusterId: 2 }
  const limits = { maxOperations: 128, maxRequestBytes: 1536 * 1024, quotaBytes, progressNotifyMs: 600_000 }
  const auth = { passwords: passwordThread(4), tokenTtlMs: 300_000, namesInCertificates: false }
  const { services } = etcdServices({ store, clock: realClock, ...ids, ...limits, ...auth, temporaryFolder: folder })
  const documents = () => ({ status: 200, contentType: 'application/json', body: '{"health":"true","reason":""}' })
  const keepAlive = { intervalMs: 7_200_000, timeoutMs: 20_000, minTimeMs: 5_000 }
  const server = await serveGrpc('127.0.0.1', 0, { services, documents, keepAlive, maxRequestBytes: 2048 * 1024, maxConcurrentStreams: 1000 })
  return {
    store,
    folder,
    endpoint: `127.0.0.1:${server.port}`,
    close: async () => {
      await server.close()
      await store.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
