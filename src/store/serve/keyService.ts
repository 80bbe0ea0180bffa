/** etcd's KV service (L2). Upstream: etcd server/etcdserver/api/v3rpc/key.go, server/etcdserver/txn (v3.6). */
import { leaseIdOf } from '../leaseId.ts'
import type { KeyValue, Op } from '../store.ts'
import { isStoreError } from '../storeError.ts'
import { wantsSpace } from '../wantsSpace.ts'
import { refuseUnderAlarm } from './alarms.ts'
import type { EtcdApi } from './api.ts'
import type { GuardedService } from './guardedService.ts'
import { type DeleteRangeRequest, endOf, keyOf, keyValueMessage, ownBytes, type PutRequest, type RangeRequest, type TxnRequest } from './messages.ts'
import { needsWholeRange, rangeMessage, rangeOptions } from './ranges.ts'
import { refusal, refusalOf } from './refusals.ts'
import { checkPut, planTransaction } from './transactions.ts'

/** Tries of a put that keeps the value or lease, while others write the key. */
const maxTries = 100

export function keyService(api: EtcdApi): GuardedService {
  const { store } = api
  const reported =
    <Request>(handle: (request: Request, permit: () => void) => Promise<object>) =>
    async (request: Request, permit: () => void): Promise<object> => {
      try {
        return await handle(request, permit)
      } catch (error) {
        if (isStoreError(error, 'noSpace')) api.alarms.raise('NOSPACE')
        throw refusalOf(error)
      }
    }
  return {
    methods: {
      Range: reported(async (request: RangeRequest) => {
        const range = rangeArguments(request)
        refuseUnderAlarm(api.alarms, false)
        const result = await store.range(...range)
        return rangeMessage(api.header(result.revision), request, result)
      }),
      Put: reported(async (request: PutRequest, permit) => {
        checkPut(api, request)
        refuseUnderAlarm(api.alarms, true)
        const { previous, revision } = await put(api, request, permit)
        return { header: api.header(revision), ...(request.prevKv && previous ? { prevKv: keyValueMessage(previous) } : {}) }
      }),
      DeleteRange: reported(async (request: DeleteRangeRequest) => {
        if (request.key.length === 0) throw refusal('emptyKey')
        refuseUnderAlarm(api.alarms, false)
        const [from, to] = [keyOf(request.key), endOf(request.rangeEnd)]
        const read: Op[] = request.prevKv ? [{ type: 'range', from, to }] : []
        const { responses, revision } = await store.transact({ compare: [], success: [...read, { type: 'delete', from, to }] })
        const deleted = responses.at(-1)
        const found = responses[0]?.type === 'range' ? responses[0].result.kvs : []
        return {
          header: api.header(revision),
          deleted: deleted?.type === 'delete' ? deleted.deleted : 0,
          prevKvs: found.map((kv) => keyValueMessage(kv)),
        }
      }),
      Txn: reported(async (request: TxnRequest) => {
        const plan = planTransaction(api, request)
        refuseUnderAlarm(api.alarms, wantsSpace(plan.transaction))
        const result = await store.transact(plan.transaction)
        return { header: api.header(result.revision), succeeded: result.succeeded, responses: plan.responses(result) }
      }),
      Compact: reported(async ({ revision }: { readonly revision: number }) => {
        refuseUnderAlarm(api.alarms, false)
        await store.compact(revision)
        return { header: api.header() }
      }),
    },
  }
}

function rangeArguments(request: RangeRequest): Parameters<EtcdApi['store']['range']> {
  if (request.key.length === 0) throw refusal('emptyKey')
  return [keyOf(request.key), endOf(request.rangeEnd), rangeOptions(request, needsWholeRange(request))]
}

interface Put {
  readonly previous: KeyValue | undefined
  readonly revision: number
}

async function put({ store }: EtcdApi, request: PutRequest, permit: () => void): Promise<Put> {
  const key = keyOf(request.key)
  if (!request.ignoreValue && !request.ignoreLease) {
    const read: Op[] = request.prevKv ? [{ type: 'range', from: key }] : []
    const { responses, revision } = await store.transact({
      compare: [],
      success: [...read, { type: 'put', key, value: ownBytes(request.value), lease: leaseIdOf(request.lease) }],
    })
    return { previous: responses[0]?.type === 'range' ? responses[0].result.kvs[0] : undefined, revision }
  }
  for (let tries = 0; tries < maxTries; tries++) {
    const [previous] = (await store.range(key)).kvs
    if (!previous) throw refusal('keyNotFound')
    const value = request.ignoreValue ? previous.value : ownBytes(request.value)
    const lease = request.ignoreLease ? previous.lease : leaseIdOf(request.lease)
    permit()
    const { succeeded, revision } = await store.transact({
      compare: [{ key, target: 'mod', op: '=', value: previous.modRevision }],
      success: [{ type: 'put', key, value, lease }],
    })
    if (succeeded) return { previous, revision }
  }
  throw refusal('unavailable')
}
