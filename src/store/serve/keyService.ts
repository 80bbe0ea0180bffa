/** etcd's KV service (L2). Upstream: etcd server/etcdserver/api/v3rpc/key.go, server/etcdserver/txn (v3.6). */
import { isStoreError } from '../storeError.ts'
import { refuseUnderAlarm } from './alarms.ts'
import type { EtcdApi } from './api.ts'
import type { GuardedService } from './guardedService.ts'
import { type DeleteRangeRequest, endOf, keyOf, type PutRequest, type RangeRequest, type TxnRequest } from './messages.ts'
import { needsWholeRange, rangeMessage, rangeOptions } from './ranges.ts'
import { refusal, refusalOf } from './refusals.ts'
import { checkPut } from './transactionRules.ts'
import { planDeletion, planPut, planTransaction, type TransactionPlan } from './transactions.ts'

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
  const transact = async (prepare: TransactionPlan['prepare']): Promise<object> => {
    const { prepared, responses, revision } = await store.transactWith(prepare)
    return { ...prepared.answer(responses, revision), header: api.header(revision) }
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
        return transact(planPut(request))
      }),
      DeleteRange: reported(async (request: DeleteRangeRequest) => {
        if (request.key.length === 0) throw refusal('emptyKey')
        refuseUnderAlarm(api.alarms, false)
        return transact(planDeletion(request))
      }),
      Txn: reported(async (request: TxnRequest) => {
        const plan = planTransaction(api, request)
        refuseUnderAlarm(api.alarms, plan.wantsSpace)
        return transact(plan.prepare)
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
