/** etcd's transactions in the store's terms (L2, pure). Upstream: etcd server/etcdserver/api/v3rpc/key.go checkTxnRequest (v3.6). */

import type { GrpcRefusal } from '#grpc/grpcService'
import { leaseIdOf } from '../leaseId.ts'
import type { Compare, Op, OpResult, Transaction, TransactionResult } from '../store.ts'
import type { EtcdApi } from './api.ts'
import { type CompareMessage, endOf, keyOf, keyValueMessage, ownBytes, type PutRequest, type RequestOp, type TxnRequest } from './messages.ts'
import { needsWholeRange, rangeMessage, rangeOptions } from './ranges.ts'
import { notServed, refusal } from './refusals.ts'

export interface TransactionPlan {
  readonly transaction: Transaction
  /** The messages ResponseOp of the branch that was carried out. */
  responses(result: TransactionResult): object[]
}

/** One operation of a request: the store's operations for it, and its answer from their results. */
interface Step {
  readonly ops: readonly Op[]
  readonly bytes: number
  answer(results: readonly OpResult[]): object
}

/** @throws GrpcRefusal for what etcd refuses, and for nested transactions and compares of ranges */
export function planTransaction(api: EtcdApi, request: TxnRequest): TransactionPlan {
  const { compare, success, failure } = request
  checkOperationCount(api, request)
  const compares = compare.map(compareOf)
  for (const branch of [success, failure]) checkKeys(branch)
  const branches = { success: success.map((op) => stepOf(api, op)), failure: failure.map((op) => stepOf(api, op)) }
  const bytes = [...branches.success, ...branches.failure].reduce((sum, step) => sum + step.bytes, 0)
  if (bytes > api.maxRequestBytes) throw refusal('tooLarge')
  return {
    transaction: { compare: compares, success: branches.success.flatMap(({ ops }) => ops), failure: branches.failure.flatMap(({ ops }) => ops) },
    responses: ({ succeeded, responses }) => {
      let at = 0
      return (succeeded ? branches.success : branches.failure).map((step) => {
        const own = responses.slice(at, at + step.ops.length)
        at += step.ops.length
        return step.answer(own)
      })
    },
  }
}

/** @throws GrpcRefusal */
export function checkOperationCount({ maxOperations }: Pick<EtcdApi, 'maxOperations'>, { compare, success, failure }: TxnRequest): void {
  if (Math.max(compare.length, success.length, failure.length) > maxOperations) throw refusal('tooManyOperations')
}

export const noNestedTransactions = (): GrpcRefusal => notServed('nested transactions are not supported')

/** @throws GrpcRefusal */
export function checkPut({ maxRequestBytes }: Pick<EtcdApi, 'maxRequestBytes'>, { key, value, lease, ignoreValue, ignoreLease }: PutRequest): void {
  if (key.length === 0) throw refusal('emptyKey')
  if (ignoreValue && value.length > 0) throw refusal('valueProvided')
  if (ignoreLease && lease !== '0') throw refusal('leaseProvided')
  if (key.length + value.length > maxRequestBytes) throw refusal('tooLarge')
}

const operators: Readonly<Record<string, Compare['op']>> = { EQUAL: '=', GREATER: '>', LESS: '<', NOT_EQUAL: '!=' }

function compareOf(message: CompareMessage): Compare {
  if (message.key.length === 0) throw refusal('emptyKey')
  if (message.rangeEnd.length > 0) throw notServed('compares of ranges are not supported')
  const op = operators[message.result]
  if (!op) throw notServed(`the result ${message.result} of a compare is unknown`)
  const key = keyOf(message.key)
  switch (message.target) {
    case 'VERSION':
      return { key, op, target: 'version', value: message.version }
    case 'CREATE':
      return { key, op, target: 'create', value: message.createRevision }
    case 'MOD':
      return { key, op, target: 'mod', value: message.modRevision }
    case 'LEASE':
      return { key, op, target: 'lease', value: leaseIdOf(message.lease) }
    case 'VALUE':
      return { key, op, target: 'value', value: ownBytes(message.value) }
    default:
      throw notServed(`the target ${message.target} of a compare is unknown`)
  }
}

function stepOf(api: EtcdApi, { requestRange, requestPut, requestDeleteRange, requestTxn }: RequestOp): Step {
  if (requestRange) {
    if (requestRange.key.length === 0) throw refusal('emptyKey')
    const options = rangeOptions(requestRange, needsWholeRange(requestRange))
    return {
      ops: [{ type: 'range', from: keyOf(requestRange.key), to: endOf(requestRange.rangeEnd), options }],
      bytes: requestRange.key.length,
      answer: ([found]) => ({ responseRange: found?.type === 'range' ? rangeMessage(undefined, requestRange, found.result) : {} }),
    }
  }
  if (requestPut) {
    checkPut(api, requestPut)
    if (requestPut.ignoreValue || requestPut.ignoreLease) throw notServed('puts that keep the value or the lease are not supported in transactions')
    const key = keyOf(requestPut.key)
    const read: Op[] = requestPut.prevKv ? [{ type: 'range', from: key }] : []
    return {
      ops: [...read, { type: 'put', key, value: ownBytes(requestPut.value), lease: leaseIdOf(requestPut.lease) }],
      bytes: requestPut.key.length + requestPut.value.length,
      answer: ([found]) => ({ responsePut: found?.type === 'range' && found.result.kvs[0] ? { prevKv: keyValueMessage(found.result.kvs[0]) } : {} }),
    }
  }
  if (requestDeleteRange) {
    if (requestDeleteRange.key.length === 0) throw refusal('emptyKey')
    const [from, to] = [keyOf(requestDeleteRange.key), endOf(requestDeleteRange.rangeEnd)]
    const read: Op[] = requestDeleteRange.prevKv ? [{ type: 'range', from, to }] : []
    return {
      ops: [...read, { type: 'delete', from, to }],
      bytes: requestDeleteRange.key.length,
      answer: (results) => {
        const [found, deleted] = [results[0], results.at(-1)]
        const prevKvs = found?.type === 'range' ? found.result.kvs.map((kv) => keyValueMessage(kv)) : []
        return { responseDeleteRange: { deleted: deleted?.type === 'delete' ? deleted.deleted : 0, prevKvs } }
      },
    }
  }
  if (requestTxn) throw noNestedTransactions()
  // As etcd, for an operation without content.
  throw refusal('keyNotFound')
}

/** A key may be put once in a branch, and not be put and deleted. */
function checkKeys(branch: readonly RequestOp[]): void {
  const deletions = branch.flatMap(({ requestDeleteRange: one }) => (one ? [{ from: keyOf(one.key), to: endOf(one.rangeEnd) }] : []))
  const put = new Set<string>()
  for (const { requestPut } of branch) {
    if (!requestPut) continue
    const key = keyOf(requestPut.key)
    const isDeleted = deletions.some(({ from, to }) => (to === undefined ? key === from : key >= from && (to === '\0' || key < to)))
    if (put.has(key) || isDeleted) throw refusal('duplicateKey')
    put.add(key)
  }
}
