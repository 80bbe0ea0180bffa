/** Snapshot, hashes and defragmentation of etcd's Maintenance service (L2). Upstream: etcd server/etcdserver/api/v3rpc/maintenance.go (v3.6). */
import { createHash, randomUUID } from 'node:crypto'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { GrpcRefusal, type ServiceImplementation, type StreamCall } from '#grpc/grpcService'
import { etcdProto } from '#grpc/proto/etcd'
import { storageVersion } from '../snapshot/buckets.ts'
import { hashOfDatabase, hashOfKeys } from '../snapshot/hash.ts'
import { piecesOf, writeDatabase } from '../snapshot/snapshotFile.ts'
import type { LocalStore, StoreSnapshot } from '../store.ts'
import { createAlarms } from './alarms.ts'
import type { EtcdApi } from './api.ts'
import type { Permit } from './auth/authStore.ts'
import type { GuardedService } from './guardedService.ts'
import { refusal, refusalOf } from './refusals.ts'
import { atMost, createTurns } from './turns.ts'

/** Bytes of the database in one message. etcd sends an eighth of it, which costs each side more. */
const pieceBytes = 256 * 1024

/** Each takes as much disk as the store while its client reads it. */
const mostSnapshots = 4

/** Hashes and defragmentations that run or wait for their turn. */
const mostOthers = 16

type SnapshotApi = Pick<EtcdApi, 'store' | 'alarms' | 'header' | 'temporaryFolder'>

export function snapshotMethods(api: SnapshotApi): {
  readonly methods: NonNullable<GuardedService['methods']>
  readonly streams: { readonly Snapshot: (call: StreamCall<object>, permit: Permit) => Promise<void> }
} {
  const { store, alarms, header } = api
  /** Each reads the whole store, so that they go one after the other however many clients ask. */
  const turns = createTurns()
  const inTurn = <T>(permit: Permit, work: () => Promise<T>): Promise<T> =>
    turns(() => {
      permit()
      return work()
    }).catch((error: unknown) => {
      throw refusalOf(error)
    })
  const withSnapshot = <T>(permit: Permit, use: (snapshot: StoreSnapshot) => Promise<T>): Promise<T> =>
    inTurn(permit, async () => {
      const snapshot = await store.snapshot()
      try {
        return await use(snapshot)
      } finally {
        snapshot.close()
      }
    })

  const others = atMost(mostOthers, () => exhausted(`${mostOthers} hashes and defragmentations run or wait already`))
  const snapshots = atMost(mostSnapshots, () => exhausted(`${mostSnapshots} snapshots are sent already`))

  const hashKeys = async ({ revision }: { readonly revision: number }, permit: Permit): Promise<object> => {
    if (revision > 0 && revision < store.compactRevision()) throw refusal('compacted')
    if (revision > store.latestRevision()) throw refusal('futureRevision')
    return withSnapshot(permit, async (snapshot) => {
      if (revision > 0 && revision < snapshot.compactRevision) throw refusal('compacted')
      const hashRevision = revision > 0 ? revision : snapshot.revision
      // etcd answers -1 before the first compaction.
      const compactRevision = snapshot.compactRevision || -1
      return { header: header(snapshot.revision), hash: await hashOfKeys(snapshot, hashRevision), compactRevision, hashRevision }
    })
  }

  const sendFile = async (call: StreamCall<object>, permit: Permit): Promise<void> => {
    const file = await temporaryFile(api.temporaryFolder)
    try {
      const length = await withSnapshot(permit, (snapshot) => writeDatabase(file, snapshot, { alarms: alarms.active() }))
      const digest = createHash('sha256')
      let remainingBytes = length
      for await (const blob of piecesOf(file, length, pieceBytes)) {
        if (call.signal.aborted) return
        digest.update(blob)
        remainingBytes -= blob.length
        call.send({ remainingBytes, blob, version: storageVersion })
        await call.drained()
      }
      call.send({ remainingBytes: 0, blob: digest.digest(), version: storageVersion })
    } catch (error) {
      throw refusalOfFile(error)
    } finally {
      await file.close()
    }
  }

  return {
    methods: {
      HashKV: (request: { readonly revision: number }, permit: Permit) => others(() => hashKeys(request, permit)),
      Hash: (_: object, permit: Permit) =>
        others(() =>
          withSnapshot(permit, async (snapshot) => ({
            header: header(snapshot.revision),
            hash: await hashOfDatabase(snapshot, { alarms: alarms.active() }),
          })),
        ),
      Defragment: async (_: object, permit: Permit) => {
        await others(() => inTurn(permit, () => store.defragment()))
        return { header: header() }
      },
    },
    streams: { Snapshot: (call, permit) => snapshots(() => sendFile(call, permit)) },
  }
}

const exhausted = (what: string) => new GrpcRefusal('RESOURCE_EXHAUSTED', `skiff: ${what}`)

/** Without a name from the beginning, so that it is gone with this process. */
async function temporaryFile(folder: string): Promise<FileHandle> {
  const name = join(folder, `.snapshot-${randomUUID()}`)
  const file = await open(name, 'wx+', 0o600).catch((error: unknown) => {
    throw refusalOfFile(error)
  })
  await rm(name)
  return file
}

function refusalOfFile(error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOSPC' ? exhausted('no space for the file of the snapshot') : error
}

/** Only the snapshots of a store, for a socket of its own. */
export function snapshotService(store: LocalStore, temporaryFolder: string): ServiceImplementation {
  const header = () => ({ clusterId: 0, memberId: 0, revision: store.latestRevision(), raftTerm: 0 })
  const { streams } = snapshotMethods({ store, header, alarms: createAlarms(), temporaryFolder })
  return { proto: etcdProto, service: 'etcdserverpb.Maintenance', streams: { Snapshot: (call: StreamCall<object>) => streams.Snapshot(call, () => {}) } }
}
