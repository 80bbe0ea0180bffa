/** etcd's transactions in the store's terms (L2, pure). Upstream: etcd server/etcdserver/txn/txn.go (v3.6). */
import { leaseIdOf } from '../leaseId.ts'
import type { Compare, Op, OpResult, Revision, WrittenView } from '../store.ts'
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

/** The result of an operation, and the store's revision after it, as the header of its answer has it. */
type Outcome = OpResult & { readonly revision: Revision }

/** The operations of a request for what is written at that moment, and the answer to it. */
interface Prepared {
  readonly ops: readonly Op[]
  /** The message with the answer. @param outcomes of `ops` */
  answer(outcomes: readonly Outcome[]): object
}

/** One operation of a request. As in etcd the compares of a nested transaction do not see what the transaction around it writes. */
type Step = (view: WrittenView) => Prepared

export interface PreparedRequest {
  readonly ops: readonly Op[]
  /** The message with the answer. @param revision of the store after the operations */
  answer(results: readonly OpResult[], revision: Revision): object
}

export interface TransactionPlan {
  /** Whether any branch, however deep, puts a value. */
  readonly wantsSpace: boolean
  /** @throws GrpcRefusal for a value or lease to keep of a key that does not exist */
  prepare(view: WrittenView): PreparedRequest
}

/** @throws GrpcRefusal for what etcd refuses */
export function planTransaction(api: Pick<EtcdApi, 'maxOperations' | 'maxRequestBytes'>, request: TxnRequest): TransactionPlan {
  const { puts } = checkTransaction(api, request)
  const prepare = planned(transactionStep(request))
  return {
    wantsSpace: puts > 0,
    prepare: (view) => {
      const prepared = prepare(view)
      checkAnswers(prepared.ops, view)
      return prepared
    },
  }
}

/** The ranges of one transaction may all be of the same large keys. etcd has no such bound. */
const mostAnswerBytes = 64 << 20

/** Each range may also find what the transaction puts. It stops counting at the bound. @throws GrpcRefusal */
function checkAnswers(ops: readonly Op[], view: WrittenView): void {
  const put = ops.reduce((bytes, op) => bytes + (op.type === 'put' ? op.key.length + op.value.length : 0), 0)
  let bytes = 0
  for (const op of ops) {
    if (op.type === 'range') bytes += put + view.bytesIn(op.from, op.to, op.options)
    if (bytes > mostAnswerBytes) throw notServed(`the answers of a transaction have at most ${mostAnswerBytes} bytes together`)
  }
}

/** What the message PutRequest does; its answer is PutResponse. */
export const planPut = (request: PutRequest): TransactionPlan['prepare'] => planned(putStep(request))

/** What the message DeleteRangeRequest does; its answer is DeleteRangeResponse. */
export const planDeletion = (request: DeleteRangeRequest): TransactionPlan['prepare'] => planned(deletionStep(request))

function planned(step: Step): TransactionPlan['prepare'] {
  return (view) => {
    const { ops, answer } = step(view)
    return { ops, answer: (results, revision) => answer(outcomesOf(results, revision)) }
  }
}

/** All writes of a transaction share one revision: before the first of them the store is at the one before it. */
function outcomesOf(results: readonly OpResult[], revision: Revision): Outcome[] {
  const isWrite = (result: OpResult) => result.type === 'put' || (result.type === 'delete' && result.deleted > 0)
  const first = results.findIndex(isWrite)
  return results.map((result, at) => ({ ...result, revision: at < first ? revision - 1 : revision }))
}

const noBytes = new Uint8Array(0)

/** A put may keep the value or the lease that the key has. */
function putStep(request: PutRequest): Step {
  const key = keyOf(request.key)
  const value = request.ignoreValue ? undefined : ownBytes(request.value)
  const lease = request.ignoreLease ? undefined : leaseIdOf(request.lease)
  const read: Op[] = request.prevKv ? [{ type: 'range', from: key }] : []
  const keepsPart = value === undefined || lease === undefined
  return (view) => {
    const kept = keepsPart ? view.get(key) : undefined
    if (keepsPart && !kept) throw refusal('keyNotFound')
    if (lease) view.checkLease(lease)
    return {
      ops: [...read, { type: 'put', key, value: value ?? kept?.value ?? noBytes, lease: lease ?? kept?.lease }],
      answer: (outcomes) => {
        const [previous] = keyValuesIn(outcomes[0])
        return { header: headerOf(outcomes), ...(previous ? { prevKv: previous } : {}) }
      },
    }
  }
}

/** The keys that a range before a write has found. */
function keyValuesIn(outcome: Outcome | undefined): object[] {
  return outcome?.type === 'range' ? outcome.result.kvs.map((kv) => keyValueMessage(kv)) : []
}

/** As in etcd a part of a transaction says only the revision. */
function headerOf(outcomes: readonly Outcome[]): { readonly revision: Revision } {
  return { revision: outcomes.at(-1)?.revision ?? 0 }
}

function transactionStep({ compare, success, failure }: TxnRequest): Step {
  const compares = compare.map(compareOf)
  const branches = { success: success.map(stepOf), failure: failure.map(stepOf) }
  return (view) => {
    const succeeded = compares.every((one) => view.holds(one))
    const parts = (succeeded ? branches.success : branches.failure).map((step) => step(view))
    return {
      ops: parts.flatMap(({ ops }) => ops),
      answer: (outcomes) => {
        let at = 0
        const responses = parts.map(({ ops, answer }) => {
          const own = outcomes.slice(at, at + ops.length)
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
  if (requestRange) return asMember('responseRange', rangeStep(requestRange))
  if (requestPut) return asMember('responsePut', putStep(requestPut))
  if (requestDeleteRange) return asMember('responseDeleteRange', deletionStep(requestDeleteRange))
  // As in etcd the header of a nested transaction is there and empty.
  if (requestTxn) return asMember('responseTxn', transactionStep(requestTxn), { header: {} })
  throw refusal('keyNotFound')
}

/** The answer as a member of ResponseOp. */
function asMember(member: string, step: Step, more: object = {}): Step {
  return (view) => {
    const { ops, answer } = step(view)
    return { ops, answer: (outcomes) => ({ [member]: { ...more, ...answer(outcomes) } }) }
  }
}

function rangeStep(request: RangeRequest): Step {
  const options = rangeOptions(request, needsWholeRange(request))
  const prepared: Prepared = {
    ops: [{ type: 'range', from: keyOf(request.key), to: endOf(request.rangeEnd), options }],
    answer: ([found]) => (found?.type === 'range' ? rangeMessage({ revision: found.result.revision }, request, found.result) : {}),
  }
  return () => prepared
}

function deletionStep({ key, rangeEnd, prevKv }: DeleteRangeRequest): Step {
  const [from, to] = [keyOf(key), endOf(rangeEnd)]
  const read: Op[] = prevKv ? [{ type: 'range', from, to }] : []
  const prepared: Prepared = {
    ops: [...read, { type: 'delete', from, to }],
    answer: (outcomes) => {
      const last = outcomes.at(-1)
      const deleted = last?.type === 'delete' ? last.deleted : 0
      return { header: headerOf(outcomes), deleted, prevKvs: keyValuesIn(outcomes[0]) }
    },
  }
  return () => prepared
}
