/** etcd's transactions in the store's terms (L2, pure). Upstream: etcd server/etcdserver/txn/txn.go (v3.6). */
import { leaseIdOf } from '../leaseId.ts'
import type { Compare, Op, OpResult, WrittenView } from '../store.ts'
import type { EtcdApi } from './api.ts'
import {
  type CompareMessage,
  type DeleteRangeRequest,
  endOf,
  keyOf,
  keyValueMessage,
  ownBytes,
  type PutRequest,
  type RangeRequest,
  type RequestOp,
  type TxnRequest,
} from './messages.ts'
import { needsWholeRange, rangeMessage, rangeOptions } from './ranges.ts'
import { notServed, refusal } from './refusals.ts'
import { checkTransaction } from './transactionRules.ts'

/** The operations of a request for what is written at that moment. */
export interface Chosen {
  readonly ops: readonly Op[]
  /** A member of the message ResponseOp, or all of TxnResponse. @param results of `ops` */
  answer(results: readonly OpResult[]): object
}

export interface TransactionPlan {
  /** Whether any branch, however deep, puts a value. */
  readonly wantsSpace: boolean
  /** As in etcd the compares within a nested transaction do not see what the transaction around it writes. @throws GrpcRefusal for a kept value of no key */
  choose(view: WrittenView): Chosen
}

/** One operation of a request. */
type Step = (view: WrittenView) => Chosen

/** @throws GrpcRefusal for what etcd refuses */
export function planTransaction(api: Pick<EtcdApi, 'maxOperations' | 'maxRequestBytes'>, request: TxnRequest): TransactionPlan {
  const { bytes, puts } = checkTransaction(api, request)
  if (bytes > api.maxRequestBytes) throw refusal('tooLarge')
  return { wantsSpace: puts > 0, choose: branchesOf(request) }
}

const noBytes = new Uint8Array(0)

/** The message PutResponse, and the operation of a put, which may keep the value or the lease that the key has. */
export function planPut(request: PutRequest): (view: WrittenView) => { readonly ops: readonly Op[]; answer(): object } {
  const key = keyOf(request.key)
  const value = request.ignoreValue ? undefined : ownBytes(request.value)
  const lease = request.ignoreLease ? undefined : leaseIdOf(request.lease)
  return (view) => {
    const keepsPart = value === undefined || lease === undefined
    const previous = keepsPart || request.prevKv ? view.get(key) : undefined
    if (keepsPart && !previous) throw refusal('keyNotFound')
    if (lease) view.checkLease(lease)
    const put = { type: 'put', key, value: value ?? previous?.value ?? noBytes, lease: lease ?? previous?.lease } as const
    return { ops: [put], answer: () => (request.prevKv && previous ? { prevKv: keyValueMessage(previous) } : {}) }
  }
}

function branchesOf({ compare, success, failure }: TxnRequest): Step {
  const compares = compare.map(compareOf)
  const branches = { success: success.map(stepOf), failure: failure.map(stepOf) }
  return (view) => {
    const succeeded = compares.every((one) => view.holds(one))
    const chosen = (succeeded ? branches.success : branches.failure).map((step) => step(view))
    return {
      ops: chosen.flatMap(({ ops }) => ops),
      answer: (results) => {
        let at = 0
        const responses = chosen.map(({ ops, answer }) => {
          const own = results.slice(at, at + ops.length)
          at += ops.length
          return answer(own)
        })
        return { succeeded, responses }
      },
    }
  }
}

const operators: Readonly<Record<string, Compare['op']>> = { EQUAL: '=', GREATER: '>', LESS: '<', NOT_EQUAL: '!=' }

function compareOf(message: CompareMessage): Compare {
  const op = operators[message.result]
  if (!op) throw notServed(`the result ${message.result} of a compare is unknown`)
  const range = { key: keyOf(message.key), to: endOf(message.rangeEnd), op }
  switch (message.target) {
    case 'VERSION':
      return { ...range, target: 'version', value: message.version }
    case 'CREATE':
      return { ...range, target: 'create', value: message.createRevision }
    case 'MOD':
      return { ...range, target: 'mod', value: message.modRevision }
    case 'LEASE':
      return { ...range, target: 'lease', value: leaseIdOf(message.lease) }
    case 'VALUE':
      return { ...range, target: 'value', value: ownBytes(message.value) }
    default:
      throw notServed(`the target ${message.target} of a compare is unknown`)
  }
}

function stepOf({ requestRange, requestPut, requestDeleteRange, requestTxn }: RequestOp): Step {
  if (requestRange) return planRange(requestRange)
  if (requestPut) return named('responsePut', planPut(requestPut))
  if (requestDeleteRange) return planDeletion(requestDeleteRange)
  if (requestTxn) return named('responseTxn', branchesOf(requestTxn))
  throw refusal('keyNotFound')
}

/** The answer as the member of ResponseOp. */
function named(member: string, choose: Step): Step {
  return (view) => {
    const { ops, answer } = choose(view)
    return { ops, answer: (results) => ({ [member]: answer(results) }) }
  }
}

function planRange(request: RangeRequest): Step {
  const options = rangeOptions(request, needsWholeRange(request))
  const range: Op = { type: 'range', from: keyOf(request.key), to: endOf(request.rangeEnd), options }
  const chosen: Chosen = {
    ops: [range],
    answer: ([found]) => ({ responseRange: found?.type === 'range' ? rangeMessage(undefined, request, found.result) : {} }),
  }
  return () => chosen
}

function planDeletion({ key, rangeEnd, prevKv }: DeleteRangeRequest): Step {
  const [from, to] = [keyOf(key), endOf(rangeEnd)]
  const read: Op[] = prevKv ? [{ type: 'range', from, to }] : []
  const chosen: Chosen = {
    ops: [...read, { type: 'delete', from, to }],
    answer: (results) => {
      const [found, deleted] = [results[0], results.at(-1)]
      const prevKvs = found?.type === 'range' ? found.result.kvs.map((kv) => keyValueMessage(kv)) : []
      return { responseDeleteRange: { deleted: deleted?.type === 'delete' ? deleted.deleted : 0, prevKvs } }
    },
  }
  return () => chosen
}
