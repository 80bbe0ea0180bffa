/** Why the server of an API group is not available (L2). */
import type { APIService } from '#api/gen/types/apiregistration.v1'
import type { Service } from '#api/gen/types/core.v1'
import { findCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { conditionText, type Explanation, kubectl, skiffWhy } from './answer.ts'
import { explainService } from './service.ts'
import type { View } from './view.ts'

export async function explainApiService({ spec, status, metadata: { name = '' } }: Frozen<APIService>, view: View): Promise<Explanation> {
  const condition = findCondition(status?.conditions, 'Available')
  if (condition?.status === 'True') return { state: 'it is Available', causes: [] }
  const reference = spec?.service
  const where = `${reference?.namespace}/${reference?.name}`
  const evidence = condition ? conditionText({ ...condition, message: '' }) : 'no condition Available'
  const state = 'it is not Available'
  if (!reference)
    return {
      state,
      causes: [{ text: condition?.message ?? 'the API server has not checked it yet', evidence, next: kubectl(undefined, 'describe', 'apiservice', name) }],
    }
  const { object: service, isAbsent } = await view.get<Service>('services', reference.namespace, reference.name ?? '')
  const ofService = service ? (await explainService({ ...service, kind: 'Service' }, view)).causes[0] : undefined
  const why = isAbsent ? 'which does not exist' : (ofService?.text ?? condition?.message ?? 'which the API server has not checked yet')
  const next = service ? skiffWhy('service', reference.name ?? '', reference.namespace) : kubectl(reference.namespace, 'get', 'services')
  return { state, causes: [{ text: `Service ${where} serves this group: ${why}`, evidence, next }] }
}
