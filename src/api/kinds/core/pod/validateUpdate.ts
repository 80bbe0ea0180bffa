/**
 * Validates updates of a pod (L1). Images, the deadline, further tolerations and removed scheduling gates may change, and the scheduling
 * constraints while the pod is gated. The resize, ephemeralcontainers and status endpoints have their own rules.
 * Upstream: pkg/apis/core/validation ValidatePodUpdate, ValidatePodEphemeralContainersUpdate (v1.36).
 */
import type { Affinity, Container, Pod, PodSpec, Toleration } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { ownValue } from '#base/bareMap'
import { validateTolerations } from './validateScheduling.ts'

const updateMessage =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)'

/** Validates the changes of an update: images, a shorter deadline, more tolerations, fewer scheduling gates. The new spec itself is validated elsewhere. */
export function validatePodUpdate(pod: Pod, old: Frozen<Pod>, path: FieldPath): FieldError[] {
  const spec = path.child('spec')
  for (const list of ['containers', 'initContainers'] as const) {
    if ((pod.spec[list] ?? []).length !== (old.spec[list] ?? []).length)
      return [fieldError.forbidden(spec.child(list), 'pod updates may not add or remove containers')]
  }
  const errors = [
    ...deadlineFaults(pod.spec, old.spec, spec),
    ...tolerationFaults(pod.spec, old.spec, spec),
    ...gateFaults(pod.spec, old.spec, spec),
    ...(old.spec.schedulingGates?.length ? steeringFaults(pod.spec, old.spec, spec) : []),
  ]
  const munged = munge(pod.spec, old.spec)
  if (!semanticEqual(munged, old.spec)) errors.push(fieldError.forbidden(spec, `${updateMessage}\n${difference(munged, old.spec)}`))
  return errors
}

/** Ephemeral containers are only ever added. */
export function validateEphemeralUpdate(pod: Pod, old: Frozen<Pod>, path: FieldPath): FieldError[] {
  const at = path.child('spec', 'ephemeralContainers')
  if (pod.metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined)
    return [fieldError.forbidden(path, 'static pods do not support ephemeral containers')]
  const now = new Map((pod.spec.ephemeralContainers ?? []).map((container) => [container.name, container]))
  return (old.spec.ephemeralContainers ?? []).flatMap((before) => {
    const after = now.get(before.name)
    if (!after) return [fieldError.forbidden(at, `existing ephemeral containers ${JSON.stringify(before.name)} may not be removed\n`)]
    return semanticEqual(after, before) ? [] : [fieldError.forbidden(at, `existing ephemeral containers ${JSON.stringify(before.name)} may not be changed\n`)]
  })
}

function deadlineFaults(spec: PodSpec, old: Frozen<PodSpec>, path: FieldPath): FieldError[] {
  const at = path.child('activeDeadlineSeconds')
  const [now, before] = [spec.activeDeadlineSeconds, old.activeDeadlineSeconds]
  if (now !== undefined) {
    if (now < 0 || now > 2_147_483_647) return [fieldError.invalid(at, now, 'must be between 0 and 2147483647, inclusive')]
    return before !== undefined && before < now ? [fieldError.invalid(at, now, 'must be less than or equal to previous value')] : []
  }
  return before !== undefined ? [fieldError.invalid(at, null, 'must not update from a positive integer to nil value')] : []
}

function tolerationFaults(spec: PodSpec, old: Frozen<PodSpec>, path: FieldPath): FieldError[] {
  // Both lists may be as long as the object: comparing each with each would take minutes.
  const present = new Set((spec.tolerations ?? []).map(withoutSeconds))
  const kept = (old.tolerations ?? []).every((before) => present.has(withoutSeconds(before)))
  const at = path.child('tolerations')
  if (!kept) return [fieldError.forbidden(at, 'existing toleration can not be modified except its tolerationSeconds')]
  return validateTolerations(spec.tolerations, at)
}

function withoutSeconds({ key = '', operator = '', value = '', effect = '' }: Frozen<Toleration>): string {
  return JSON.stringify([key, operator, value, effect])
}

function gateFaults(spec: PodSpec, old: Frozen<PodSpec>, path: FieldPath): FieldError[] {
  const before = new Set((old.schedulingGates ?? []).map((gate) => gate.name))
  return (spec.schedulingGates ?? []).flatMap(({ name }, i) =>
    before.has(name)
      ? []
      : [fieldError.forbidden(path.child('schedulingGates').index(i).child('name'), `only deletion is allowed, but found new scheduling gate '${name}'`)],
  )
}

/** The new spec with all permitted changes undone; it must equal the old one. Shares the parts of both: most of them are compared, not changed. */
function munge(spec: Frozen<PodSpec>, old: Frozen<PodSpec>): Frozen<PodSpec> {
  const wasNegative = (old.terminationGracePeriodSeconds ?? 0) < 0 && spec.terminationGracePeriodSeconds === 1
  return {
    ...spec,
    containers: withImagesOf(old.containers, spec.containers),
    ...(spec.initContainers ? { initContainers: withImagesOf(old.initContainers, spec.initContainers) } : {}),
    activeDeadlineSeconds: old.activeDeadlineSeconds,
    tolerations: old.tolerations,
    schedulingGates: old.schedulingGates,
    ...(wasNegative ? { terminationGracePeriodSeconds: old.terminationGracePeriodSeconds } : {}),
    ...(old.schedulingGates?.length ? { nodeSelector: old.nodeSelector, affinity: withNodeAffinityOf(old.affinity, spec.affinity) } : {}),
  }
}

function withImagesOf(old: readonly Frozen<Container>[] | undefined, containers: readonly Frozen<Container>[]): readonly Frozen<Container>[] {
  return containers.map((container, i) => (old?.[i] ? { ...container, image: old[i].image } : container))
}

function withNodeAffinityOf(old: Frozen<Affinity> | undefined, affinity: Frozen<Affinity> | undefined): Frozen<Affinity> | undefined {
  const { nodeAffinity: _, ...others } = affinity ?? {}
  const changed = { ...others, ...(old?.nodeAffinity ? { nodeAffinity: old.nodeAffinity } : {}) }
  return Object.keys(changed).length > 0 || old ? changed : undefined
}

/** While gated, constraints may be made narrower: labels added to nodeSelector, requirements added to node affinity. */
function steeringFaults(spec: PodSpec, old: Frozen<PodSpec>, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (!Object.entries(old.nodeSelector ?? {}).every(([key, value]) => ownValue(spec.nodeSelector, key) === value)) {
    const only = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)'
    errors.push(fieldError.invalid(path.child('nodeSelector'), spec.nodeSelector, only))
  }
  const field = 'requiredDuringSchedulingIgnoredDuringExecution'
  const before = old.affinity?.nodeAffinity?.[field]?.nodeSelectorTerms ?? []
  const terms = spec.affinity?.nodeAffinity?.[field]?.nodeSelectorTerms ?? []
  if (before.length === 0) return errors
  const at = path.child('affinity', 'nodeAffinity', field, 'nodeSelectorTerms')
  if (terms.length !== before.length)
    return [...errors, fieldError.invalid(at, terms, 'no additions/deletions to non-empty NodeSelectorTerms list are allowed')]
  for (const [i, term] of before.entries()) {
    const lists = ['matchExpressions', 'matchFields'] as const
    const kept = lists.every((list) => (term[list] ?? []).every((wanted, j) => semanticEqual(terms[i]?.[list]?.[j], wanted)))
    // Terms are alternatives: an empty term matches nothing, and may not be changed so that it matches.
    const empty = lists.every((list) => !term[list]?.length)
    if (!kept || (empty && !semanticEqual(terms[i], term)))
      errors.push(fieldError.invalid(at.index(i), terms[i], 'only additions are allowed (no mutations or deletions)'))
  }
  return errors
}

/** The fields that differ, one per line: upstream prints a Go diff there, which is for people and has no fixed format. */
function difference(now: Frozen<PodSpec>, old: Frozen<PodSpec>): string {
  const [a, b] = [now as unknown as Record<string, unknown>, old as unknown as Record<string, unknown>]
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort()
  const lines = names
    .filter((name) => !semanticEqual(a[name], b[name]))
    .map((name) => `- ${name}: ${JSON.stringify(b[name])}\n+ ${name}: ${JSON.stringify(a[name])}`)
  return `${lines.join('\n')}\n`
}
