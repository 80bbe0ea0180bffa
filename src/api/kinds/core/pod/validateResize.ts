/**
 * What the resize endpoint of a pod may change (L1): cpu and memory of its containers and of the pod as a whole. The quality of service stays, and what
 * is asked for is never taken back altogether.
 * Upstream: pkg/apis/core/validation ValidatePodResize (v1.36).
 */
import type { Container, Pod, ResourceRequirements } from '#api/gen/types/core.v1'
import { qosClass } from '#api/helpers/podResources'
import { semanticEqual } from '#api/machinery/equality'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'

type Resources = Frozen<ResourceRequirements>
type Amounts = Resources['requests']

const lists = ['containers', 'initContainers'] as const

/** The faults of a resize; nothing but resources and resize policies differs between the two pods. */
export function validatePodResize(pod: Pod, old: Frozen<Pod>, path: FieldPath): FieldError[] {
  if (old.metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined) return [fieldError.forbidden(path, 'static pods cannot be resized')]
  if (old.spec.os?.name === 'windows') return [fieldError.forbidden(path, 'windows pods cannot be resized')]
  const spec = path.child('spec')
  const errors: FieldError[] = []
  if (qosClass(pod) !== (old.status?.qosClass || qosClass(old)))
    errors.push(fieldError.invalid(spec, pod.status?.qosClass ?? '', 'Pod QOS Class may not change as a result of resizing'))
  const running = old.status?.containerStatuses?.find(({ state }) => state?.running)
  if (running && !running.resources) errors.push(fieldError.forbidden(spec, 'Pod running on node without support for resize'))
  errors.push(...podLevelFaults(pod.spec.resources, old.spec.resources, spec))
  const misplaced = lists.flatMap((list) => orderFaults(list, pod.spec[list] ?? [], old.spec[list] ?? [], spec.child(list)))
  if (misplaced.length > 0) return [...errors, ...misplaced]
  for (const list of ['initContainers', 'containers'] as const)
    for (const [i, { resources }] of (old.spec[list] ?? []).entries())
      errors.push(...removals(pod.spec[list]?.[i]?.resources, resources, spec.child(list).index(i).child('resources'), 'resource'))
  for (const [i, container] of pod.spec.containers.entries())
    if (changesMore(container, old.spec.containers[i])) errors.push(fieldError.forbidden(spec, 'only cpu and memory resources are mutable'))
  for (const [i, container] of (pod.spec.initContainers ?? []).entries())
    errors.push(...initContainerFaults(container, old.spec.initContainers?.[i], spec.child('initContainers').index(i)))
  return errors
}

function podLevelFaults(resources: Resources | undefined, before: Resources | undefined, spec: FieldPath): FieldError[] {
  if (before && !resources) return [fieldError.forbidden(spec.child('resources'), 'pod-level resources cannot be removed')]
  const errors = removals(resources, before, spec.child('resources'), 'pod-level resource')
  if (semanticEqual(fixedPart(resources), fixedPart(before))) return errors
  return [...errors, fieldError.forbidden(spec, 'only cpu and memory resources are mutable at pod-level')]
}

function orderFaults(list: string, containers: readonly Container[], before: Frozen<Container[]>, path: FieldPath): FieldError[] {
  if (containers.length !== before.length) return [fieldError.forbidden(path, `${list} may not be added or removed on resize`)]
  return containers.flatMap(({ name }, i) =>
    name === before[i]?.name ? [] : [fieldError.forbidden(path.index(i).child('name'), `${list} may not be renamed or reordered on resize`)],
  )
}

function initContainerFaults(container: Container, before: Frozen<Container> | undefined, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (changesMore(container, before)) errors.push(fieldError.forbidden(path, 'only cpu and memory resources for init or sidecar containers are mutable'))
  // Nothing restarts an init container that has ended.
  const restarts = container.restartPolicy !== 'Always' && container.resizePolicy?.some(({ restartPolicy }) => restartPolicy === 'RestartContainer')
  if (restarts && !semanticEqual(container, before))
    errors.push(fieldError.forbidden(path, 'non-sidecar init containers with a resize policy of RestartContainer cannot be resized'))
  return errors
}

function removals(resources: Resources | undefined, before: Resources | undefined, path: FieldPath, what: string): FieldError[] {
  return (['requests', 'limits'] as const).flatMap((kind) => {
    const isRemoved = Object.keys(before?.[kind] ?? {}).some((name) => resources?.[kind]?.[name] === undefined)
    return isRemoved ? [fieldError.forbidden(path.child(kind), `${what} ${kind} cannot be removed`)] : []
  })
}

function changesMore(container: Container, before: Frozen<Container> | undefined): boolean {
  return !semanticEqual({ ...container, resources: fixedPart(container.resources) }, { ...before, resources: fixedPart(before?.resources) })
}

/** Of resources, what a resize leaves as it is. */
function fixedPart(resources: Resources | undefined): object {
  const others = (amounts: Amounts = {}) => Object.fromEntries(Object.entries(amounts).filter(([name]) => name !== 'cpu' && name !== 'memory'))
  return { requests: others(resources?.requests), limits: others(resources?.limits), claims: resources?.claims }
}
