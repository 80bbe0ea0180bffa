/** Why a CustomResourceDefinition is not served (L2). */
import type { CustomResourceDefinition } from '#api/gen/types/apiextensions.v1'
import { findCondition, isConditionTrue } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { type Cause, conditionText, type Explanation, kubectl } from './answer.ts'

export async function explainDefinition({ status, metadata: { name = '' } }: Frozen<CustomResourceDefinition>): Promise<Explanation> {
  const { conditions } = status ?? {}
  const isServed = isConditionTrue(conditions, 'Established')
  const next = kubectl(undefined, 'describe', 'customresourcedefinition', name)
  const causes: Cause[] = []
  const add = (text: string, type: string) => {
    const condition = findCondition(conditions, type)
    if (condition) causes.push({ text: `${text}: ${condition.message}`, evidence: conditionText({ ...condition, message: '' }), next })
  }
  if (findCondition(conditions, 'NamesAccepted')?.status === 'False') add('another resource of its group has one of its names', 'NamesAccepted')
  if (isConditionTrue(conditions, 'NonStructuralSchema')) add('its schema is not structural', 'NonStructuralSchema')
  if (findCondition(conditions, 'KubernetesAPIApprovalPolicyConformant')?.status === 'False')
    add('its group belongs to Kubernetes, and its approval is missing', 'KubernetesAPIApprovalPolicyConformant')
  if (causes.length === 0 && !isServed)
    causes.push({ text: 'the API server has not established it yet', evidence: 'no condition Established with status True', next })
  return { state: isServed ? 'it is Established' : 'it is not Established', causes }
}
