/** ETC-05: transactions with compares of ranges, nested ones and kept values, sent to `skiff etcd serve`'s services and to an etcd. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Random, seededRandom } from '#base/random'
import { connectGrpc, type GrpcConnection } from '#grpc/grpcConnection'
import { methodOf } from '#store/drivers/etcd/methods'
import { longestTurn } from '#testing/longestTurn'
import { type EtcdServer, obstacleToEtcd, startEtcd } from '../../support/etcdServer.ts'
import { type ServedStore, serveStore } from '../../support/servedStore.ts'

interface Client {
  /** The answer; the text of the refusal where the call is refused. */
  call(method: string, request: object): Promise<object | string>
  close(): void
}

function clientOf(target: string): Client {
  const connection: GrpcConnection = connectGrpc(target)
  return {
    call: async (name, request) => {
      const method = methodOf(name)
      try {
        return method.response.decode(await connection.unary(method.path, method.request.encode(request), { timeoutMs: 20_000 }))
      } catch (error) {
        return (error as Error).message
      }
    },
    close: () => connection.close(),
  }
}

const keys = ['a', 'b', 'c', 'd', 'e'].map((key) => Buffer.from(key))
const ends = [Buffer.from('c'), Buffer.from('e'), Buffer.from('f'), Buffer.from('\0')]

/** Makes random transactions over few keys, so that compares hold and fail, and keys clash. */
class Transactions {
  readonly #random: Random
  /** Whether puts keep the value or the lease. Such a put after a deletion of all keys ends an etcd, so that one transaction has either. */
  #keeps = false

  constructor(random: Random) {
    this.#random = random
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#random.int(from.length)] as T
  }

  #range(): object {
    const rangeEnd = this.#pick(this.#keeps ? ends.slice(0, -1) : ends)
    return this.#random.int(2) === 0 ? { key: this.#pick(keys) } : { key: this.#pick(keys), rangeEnd }
  }

  #compare(): object {
    const result = this.#pick(['EQUAL', 'GREATER', 'LESS', 'NOT_EQUAL'])
    const revision = this.#random.int(40)
    const wanted = this.#pick<object>([
      { target: 'VERSION', version: this.#random.int(4) },
      { target: 'CREATE', createRevision: revision },
      { target: 'MOD', modRevision: revision },
      { target: 'VALUE', value: Buffer.from(String(this.#random.int(3))) },
      { target: 'LEASE', lease: String(this.#random.int(2) * 7) },
    ])
    return { ...this.#range(), result, ...wanted }
  }

  #put(): object {
    const keepsValue = this.#keeps && this.#random.int(2) === 0
    const keepsLease = this.#keeps && this.#random.int(2) === 0
    return {
      key: this.#pick(keys),
      prevKv: this.#random.int(2) === 0,
      ...(keepsValue ? { ignoreValue: true } : { value: Buffer.from(String(this.#random.int(3))) }),
      ...(keepsLease ? { ignoreLease: true } : { lease: this.#pick(['0', '0', '7', '8']) }),
    }
  }

  #operation(depth: number): object {
    const kind = this.#random.int(depth > 0 ? 5 : 3)
    if (kind === 0) return { requestRange: { ...this.#range(), limit: this.#random.int(3) } }
    if (kind === 1) return { requestPut: this.#put() }
    if (kind === 2) return { requestDeleteRange: { ...this.#range(), prevKv: this.#random.int(2) === 0 } }
    return { requestTxn: this.#transaction(depth - 1) }
  }

  next(): object {
    this.#keeps = this.#random.int(2) === 0
    return this.#transaction(3)
  }

  #transaction(depth: number): object {
    const list = <T>(most: number, make: () => T) => Array.from({ length: this.#random.int(most + 1) }, make)
    return {
      compare: list(2, () => this.#compare()),
      success: list(3, () => this.#operation(depth)),
      failure: list(3, () => this.#operation(depth)),
    }
  }
}

/** The ids of members and clusters differ, so that a header is compared by its revision. */
function comparable(answer: object | string): unknown {
  if (typeof answer === 'string') return answer
  const isHeader = (value: unknown): value is { readonly revision?: number } => typeof value === 'object' && value !== null
  return JSON.parse(JSON.stringify(answer, (name, value: unknown) => (name === 'header' && isHeader(value) ? { revision: value.revision } : value)))
}

describe('transactions of etcd', () => {
  let served: ServedStore
  let ours: Client
  before(async () => {
    served = await serveStore('memory')
    ours = clientOf(served.endpoint)
  })
  after(async () => {
    ours.close()
    await served.close()
  })

  test('ETC-05 a message of 50,000 nested transactions is refused, and the server answers afterwards', async () => {
    // Each transaction is the only operation in the one around it: RequestOp.request_txn within TxnRequest.success.
    const varint = (value: number): number[] => (value > 127 ? [(value % 128) | 128, ...varint(Math.floor(value / 128))] : [value])
    const parts: Buffer[] = []
    let length = 0
    const prepend = (tag: number) => {
      const head = Buffer.from([tag, ...varint(length)])
      parts.push(head)
      length += head.length
    }
    for (let depth = 0; depth < 50_000; depth++) {
      prepend(0x22)
      prepend(0x12)
    }
    const message = Buffer.concat(parts.reverse())
    const connection = connectGrpc(served.endpoint)
    await assert.rejects(connection.unary(methodOf('KV.Txn').path, message, { timeoutMs: 20_000 }), /its messages are nested too deep/)
    connection.close()
    assert.notEqual(typeof (await ours.call('KV.Put', { key: Buffer.from('after'), value: Buffer.from('1') })), 'string')
  })

  test('ETC-24 a message of a million empty compares is refused before it is read whole, and the server answers meanwhile', async () => {
    const connection = connectGrpc(served.endpoint)
    const message = Buffer.alloc(2_000_000)
    for (let at = 0; at < message.length; at += 2) message[at] = 0x0a
    const { longestMs } = await longestTurn(() =>
      assert.rejects(connection.unary(methodOf('KV.Txn').path, message, { timeoutMs: 20_000 }), /the request is refused: it has too many fields/),
    )
    connection.close()
    assert.ok(longestMs < 250, `${longestMs} ms`)
  })

  describe('compared with an etcd', { skip: obstacleToEtcd() }, () => {
    let etcd: EtcdServer
    let theirs: Client
    before(async () => {
      etcd = await startEtcd()
      theirs = clientOf(etcd.url.replace('http://', ''))
    })
    after(async () => {
      theirs.close()
      await etcd.stop()
    })

    test('ETC-05 1,000 random transactions get the answers that etcd gives, and leave the same keys', { timeout: 120_000 }, async (context) => {
      const fresh = await serveStore('memory')
      const mine = clientOf(fresh.endpoint)
      context.after(async () => {
        mine.close()
        await fresh.close()
      })
      const both = (method: string, request: object) => Promise.all([mine.call(method, request), theirs.call(method, request)])
      await both('Lease.LeaseGrant', { id: '7', ttl: 3600 })
      const transactions = new Transactions(seededRandom(5))
      const outcomes = new Map<string, number>()
      for (let round = 0; round < 1_000; round++) {
        const request = transactions.next()
        const [answer, wanted] = (await both('KV.Txn', request)).map(comparable)
        assert.deepEqual(
          answer,
          wanted,
          `round ${round}: ${JSON.stringify(request, (_, value) => (value?.type === 'Buffer' ? String(Buffer.from(value)) : value))}`,
        )
        const outcome = typeof answer === 'string' ? answer : 'carried out'
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      }
      const [left, wantedLeft] = (await both('KV.Range', { key: Buffer.from('\0'), rangeEnd: Buffer.from('\0') })).map(comparable)
      assert.deepEqual(left, wantedLeft)
      // Every kind of outcome was met, so that the comparison says something.
      assert.ok((outcomes.get('carried out') ?? 0) > 200, JSON.stringify([...outcomes]))
      for (const refusal of ['duplicate key given in txn request', 'requested lease not found', 'key not found'])
        assert.ok(
          [...outcomes.keys()].some((text) => text.includes(refusal)),
          `${refusal}: ${JSON.stringify([...outcomes])}`,
        )
    })
  })
})
