/** Why a Gateway or one of its listeners does not serve, and why a route is not attached (L2). */
import type { Condition } from '#api/gen/types/meta.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { type Cause, conditionText, type Explanation, kubectl, skiffWhy } from './answer.ts'
import type { View } from './view.ts'

interface Status {
  readonly conditions?: readonly Condition[]
}

export interface Gateway extends KubeObject {
  readonly spec: { readonly gatewayClassName: string }
  readonly status?: Status & { readonly listeners?: readonly (Status & { readonly name: string })[] }
}

interface GatewayClass extends KubeObject {
  readonly spec: { readonly controllerName: string }
  readonly status?: Status
}

interface ParentReference {
  readonly kind?: string
  readonly namespace?: string
  readonly name: string
  readonly sectionName?: string
}

export interface Route extends KubeObject {
  readonly spec: { readonly parentRefs?: readonly ParentReference[] }
  readonly status?: { readonly parents?: readonly (Status & { readonly parentRef: ParentReference; readonly controllerName: string })[] }
}

/** A Gateway by its class, its listeners and its conditions. */
export async function explainGateway(gateway: Frozen<Gateway>, view: View): Promise<Explanation> {
  const { gatewayClassName } = gateway.spec
  const { namespace, name = '' } = gateway.metadata
  const { conditions, listeners = [] } = gateway.status ?? {}
  const next = kubectl(namespace, 'describe', 'gateway', name)
  const { object: gatewayClass, isAbsent } = await view.get<GatewayClass>('gatewayclasses', undefined, gatewayClassName)
  const evidence = `spec.gatewayClassName ${gatewayClassName}`
  const state = `${listeners.length} listeners have a status`
  if (isAbsent)
    return { state, causes: [{ text: `its GatewayClass ${gatewayClassName} does not exist`, evidence, next: kubectl(undefined, 'get', 'gatewayclasses') }] }
  const faults = badConditions(conditions).map((condition) => ({
    text: `it is not ${condition.type}: ${condition.message}`,
    evidence: conditionText({ ...condition, message: '' }),
    next,
  }))
  const ofListeners = listeners.flatMap((listener) =>
    badConditions(listener.conditions).map((condition) => ({
      text: `its listener ${listener.name} is not ${condition.type}: ${condition.message}`,
      evidence: `status.listeners[${listener.name}], ${conditionText({ ...condition, message: '' })}`,
      next,
    })),
  )
  const causes: Cause[] = [...ofListeners, ...faults]
  if (causes.length === 0 && isUntouched(conditions)) {
    const controller = gatewayClass?.spec.controllerName
    causes.push({
      text: `the controller${controller ? ` ${controller}` : ''} of its class has not looked at it: check that it runs`,
      evidence: 'status.conditions are Unknown or absent',
      next,
    })
  }
  return { state, causes }
}

/** A route by the Gateways that it names and what each of them reports. */
export async function explainRoute(route: Frozen<Route>, view: View): Promise<Explanation> {
  const { namespace, name = '' } = route.metadata
  const { parentRefs = [] } = route.spec
  const parents = route.status?.parents ?? []
  const next = kubectl(namespace, 'describe', route.kind.toLowerCase(), name)
  const causes: Cause[] = []
  if (parentRefs.length === 0) causes.push({ text: 'it names no parent, so no Gateway serves it', evidence: 'spec.parentRefs is empty', next })
  for (const reference of parentRefs) {
    if ((reference.kind ?? 'Gateway') !== 'Gateway') continue
    const where = reference.namespace ?? namespace
    const { isAbsent } = await view.get<Gateway>('gateways', where, reference.name)
    const status = parents.find(
      ({ parentRef }) => parentRef.name === reference.name && (parentRef.namespace ?? namespace) === where && parentRef.sectionName === reference.sectionName,
    )
    const evidence = `spec.parentRefs, Gateway ${where}/${reference.name}`
    if (isAbsent) causes.push({ text: `its Gateway ${where}/${reference.name} does not exist`, evidence, next: kubectl(undefined, 'get', 'gateways', '-A') })
    else if (!status)
      causes.push({
        text: `no controller has attached it to Gateway ${where}/${reference.name}`,
        evidence: 'status.parents has no entry for it',
        next: skiffWhy('gateway', reference.name, where),
      })
    else
      causes.push(
        ...badConditions(status.conditions).map((condition) => ({
          text: `Gateway ${where}/${reference.name}, ${condition.type}: ${condition.message}`,
          evidence: `status.parents, ${conditionText({ ...condition, message: '' })}`,
          next,
        })),
      )
  }
  return { state: `${parents.length} of ${parentRefs.length} parents have a status`, causes }
}

/** The conditions of the Gateway API that are True when something is wrong. */
const negative = new Set(['Conflicted', 'PartiallyInvalid', 'OverlappingTLSConfig'])

function badConditions(conditions: readonly Frozen<Condition>[] = []): readonly Frozen<Condition>[] {
  return conditions.filter(({ type, status }) => (negative.has(type) ? status === 'True' : status === 'False'))
}

const isUntouched = (conditions: readonly Frozen<Condition>[] = []) => conditions.every(({ status }) => status === 'Unknown')
