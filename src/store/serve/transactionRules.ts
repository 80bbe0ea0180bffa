/** What etcd refuses in a transaction before it looks at a key (L2, pure). Upstream: etcd server/etcdserver/api/v3rpc/key.go checkTxnRequest, checkIntervals (v3.6). */
import type { EtcdApi } from './api.ts'
import { endOf, keyOf, type PutRequest, type RequestOp, type TxnRequest } from './messages.ts'
import { refusal } from './refusals.ts'

type Bounds = Pick<EtcdApi, 'maxOperations' | 'maxRequestBytes'>

/** @returns how many puts the transaction and those within it have @throws GrpcRefusal */
export function checkTransaction(bounds: Bounds, request: TxnRequest): { readonly puts: number } {
  checkOperationCount(bounds, request)
  const size = { bytes: 0, puts: 0 }
  checkRequests(bounds, request, size)
  for (const branch of [request.success, request.failure]) checkKeys(branch)
  if (size.bytes > bounds.maxRequestBytes) throw refusal('tooLarge')
  return size
}

/** How many times the limit of one list a transaction holds with those within it. etcd has no such bound: its lists could multiply to a hundred thousand. */
const wholeToList = 16

/** @throws GrpcRefusal */
export function checkOperationCount({ maxOperations }: Pick<EtcdApi, 'maxOperations'>, request: TxnRequest): void {
  if (countWithin(request, maxOperations) > wholeToList * maxOperations) throw refusal('tooManyOperations')
}

/** A nested transaction may have as many operations as the largest list around it leaves, so that the depth is bounded as well. @throws GrpcRefusal */
function countWithin({ compare, success, failure }: TxnRequest, most: number): number {
  const longest = Math.max(compare.length, success.length, failure.length)
  if (longest > most) throw refusal('tooManyOperations')
  let count = compare.length + success.length + failure.length
  for (const branch of [success, failure]) for (const { requestTxn } of branch) if (requestTxn) count += countWithin(requestTxn, most - longest)
  return count
}

/** @throws GrpcRefusal */
export function checkPut({ maxRequestBytes }: Pick<EtcdApi, 'maxRequestBytes'>, { key, value, lease, ignoreValue, ignoreLease }: PutRequest): void {
  if (key.length === 0) throw refusal('emptyKey')
  if (ignoreValue && value.length > 0) throw refusal('valueProvided')
  if (ignoreLease && lease !== '0') throw refusal('leaseProvided')
  if (key.length + value.length > maxRequestBytes) throw refusal('tooLarge')
}

/** @param size bytes of keys and values, and puts: both are added to */
function checkRequests(bounds: Bounds, { compare, success, failure }: TxnRequest, size: { bytes: number; puts: number }): void {
  if (compare.some(({ key }) => key.length === 0)) throw refusal('emptyKey')
  for (const branch of [success, failure])
    for (const { requestRange, requestPut, requestDeleteRange, requestTxn } of branch) {
      const keyed = requestRange ?? requestDeleteRange
      if (keyed) {
        if (keyed.key.length === 0) throw refusal('emptyKey')
        size.bytes += keyed.key.length
      } else if (requestPut) {
        checkPut(bounds, requestPut)
        size.bytes += requestPut.key.length + requestPut.value.length
        size.puts++
      } else if (requestTxn) checkRequests(bounds, requestTxn, size)
      // As etcd, for an operation without content.
      else throw refusal('keyNotFound')
    }
}

interface Deletion {
  readonly from: string
  readonly to: string | undefined
}

interface Touched {
  readonly puts: Set<string>
  readonly deletions: Deletion[]
}

const isDeleted = (deletions: readonly Deletion[], key: string): boolean =>
  deletions.some(({ from, to }) => (to === undefined ? key === from : key >= from && key < to))

/**
 * A key may be put once in a branch, and not be put and deleted. What a nested transaction touches counts for the branch around it; its two branches do not count
 * against each other. Two things are allowed, as in etcd: a put in a nested transaction and a deletion in a later one; and a deletion of all keys from a first one
 * on (its end is '\0') together with any put.
 */
function checkKeys(branch: readonly RequestOp[]): Touched {
  const deletions = branch.flatMap(({ requestDeleteRange: one }) => (one ? [{ from: keyOf(one.key), to: endOf(one.rangeEnd) }] : []))
  const puts = new Set<string>()
  const add = (key: string, mayRepeat?: ReadonlySet<string>) => {
    if ((puts.has(key) && !mayRepeat?.has(key)) || isDeleted(deletions, key)) throw refusal('duplicateKey')
    puts.add(key)
  }
  for (const { requestTxn } of branch) {
    if (!requestTxn) continue
    const [success, failure] = [checkKeys(requestTxn.success), checkKeys(requestTxn.failure)]
    for (const key of success.puts) add(key)
    for (const key of failure.puts) add(key, success.puts)
    deletions.push(...success.deletions, ...failure.deletions)
  }
  for (const { requestPut } of branch) if (requestPut) add(keyOf(requestPut.key))
  return { puts, deletions }
}
