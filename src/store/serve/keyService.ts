/** etcd's KV service (L2). Upstream: etcd server/etcdserver/api/v3rpc/key.go, server/etcdserver/txn (v3.6). */
import type { Op } from '../store.ts'
import { isStoreError } from '../storeError.ts'
import { refuseUnderAlarm } from './alarms.ts'
import type { EtcdApi } from './api.ts'
import type { GuardedService } from './guardedService.ts'
import { type DeleteRangeRequest, endOf, keyOf, keyValueMessage, type PutRequest, type RangeRequest, type TxnRequest } from './messages.ts'
import { needsWholeRange, rangeMessage, rangeOptions } from './ranges.ts'
import { refusal, refusalOf } from './refusals.ts'
import { checkPut } from './transactionRules.ts'
import { planPut, planTransaction } from './transactions.ts'

export function keyService(api: EtcdApi): GuardedService {
  const { store } = api
  const reported =
    <Request>(handle: (request: Request) => Promise<object>) =>
    async (request: Request): Promise<object> => {
      try {
        return await handle(request)
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
      Put: reported(async (request: PutRequest) => {
        checkPut(api, request)
        refuseUnderAlarm(api.alarms, true)
        const { choice, revision } = await store.transactWith(planPut(request))
        return { header: api.header(revision), ...choice.answer() }
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
        refuseUnderAlarm(api.alarms, plan.wantsSpace)
        const { choice, responses, revision } = await store.transactWith(plan.choose)
        return { header: api.header(revision), ...choice.answer(responses) }
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
