/** Why an object of any other kind waits (L2): by its conditions, its generation and its newest warning, as most controllers write them. */
import type { Condition } from '#api/gen/types/meta.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { type Cause, conditionText, type Explanation, kubectl } from './answer.ts'
import { controllerSilence } from './controllerSilence.ts'
import { eventText, type View } from './view.ts'

interface Status {
  readonly conditions?: readonly Condition[]
  readonly observedGeneration?: number
  readonly phase?: unknown
  readonly message?: unknown
  /** As snapshots of volumes have it. */
  readonly error?: { readonly message?: unknown }
}

type WithConditions = KubeObject & { readonly status?: Status }

/** True is the fault. */
const negative =
  /Fail|Error|Degraded|Pressure|Unavailable|Stalled|Conflict|Blocked|Invalid|Terminating|Suspended|Lost|Unhealthy|Denied|Exceeded|Dangling|NotReady/
/** True means that work is under way. */
const underWay = /^(Progressing|Reconciling|Updating|Provisioning|Pending|Initializing)$/

export async function explainByConditions(object: Frozen<KubeObject>, view: View): Promise<Explanation> {
  const { status } = object as Frozen<WithConditions>
  const conditions = Array.isArray(status?.conditions) ? status.conditions : []
  const faults = conditions.filter(({ type, status: is }) => (negative.test(type) ? is === 'True' : underWay.test(type) ? false : is !== 'True'))
  return {
    state: stateOf(status, conditions),
    causes: [...faults.map((condition) => causeOf(object, condition)), ...(faults.length > 0 ? [] : await quietCauses(object, view))],
  }
}

function stateOf(status: Frozen<Status> | undefined, conditions: readonly Frozen<Condition>[]): string {
  if (conditions.length > 0) return conditions.map(({ type, status: is }) => `${type} ${is}`).join(', ')
  if (typeof status?.phase === 'string') return `its phase is ${status.phase}`
  return status === undefined ? 'no controller has written a status' : 'its status has no conditions'
}

const badPhase = /^(Failed|Failure|Error|Pending|Lost|Unknown|Degraded|Invalid)$/i

function causeOf({ kind, metadata: { namespace, name = '' } }: Frozen<KubeObject>, condition: Frozen<Condition>): Cause {
  return {
    text: `${condition.type} is ${condition.status}: ${condition.message || condition.reason || 'its controller gives no reason'}`,
    evidence: conditionText({ ...condition, message: '' }),
    next: kubectl(namespace, 'describe', kind.toLowerCase(), name),
  }
}

/** Objects whose conditions show no fault. */
async function quietCauses(object: Frozen<KubeObject>, view: View): Promise<readonly Cause[]> {
  const { status, kind, metadata } = object as Frozen<WithConditions>
  const silence = status?.observedGeneration === undefined ? undefined : controllerSilence(object, status.observedGeneration)
  if (silence) return [silence]
  const underway = status?.conditions?.find(({ type, status: is }) => underWay.test(type) && is === 'True')
  const next = kubectl(metadata.namespace, 'describe', kind.toLowerCase(), metadata.name ?? '')
  if (underway)
    return [{ text: `its controller is at work: ${underway.message || underway.reason}`, evidence: conditionText({ ...underway, message: '' }), next }]
  const error = status?.error?.message
  if (typeof error === 'string') return [{ text: `its controller reports: ${error}`, evidence: 'status.error', next }]
  if (typeof status?.phase === 'string' && badPhase.test(status.phase)) {
    const why = typeof status.message === 'string' ? `: ${status.message}` : ''
    return [{ text: `its phase is ${status.phase}${why}`, evidence: 'status.phase', next }]
  }
  const [newest] = await view.eventsOf(object)
  return newest?.type === 'Warning' ? [{ text: `its newest event is a warning: ${newest.message}`, evidence: eventText(newest), next }] : []
}
