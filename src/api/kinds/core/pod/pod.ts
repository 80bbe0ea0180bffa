/**
 * Pod (L1): how it is born, what may change, how it is deleted, and how `kubectl get pods` shows it.
 * Upstream: pkg/registry/core/pod/strategy.go (v1.36).
 */
import type { Container, Pod, PodSpec } from '#api/gen/types/core.v1'
import { qosClass } from '#api/helpers/podResources'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { deepCopy } from '#base/frozen'
import { defineKind, type UpdateInput } from '../../defineKind.ts'
import { keepFields, keepStatus, resetMetadata, statusStrategy } from '../../rules.ts'
import { podColumns } from './columns.ts'
import { setPodDefaults } from './defaults.ts'
import { dropDisabledFields, dropDisabledStatusFields } from './disabledFields.ts'
import { profileMismatches, takeOverAppArmor } from './profileAnnotations.ts'
import { annotationFaults } from './validateAnnotations.ts'
import { validateImages } from './validateContainers.ts'
import { validatePodSpec } from './validatePodSpec.ts'
import { validatePodResize } from './validateResize.ts'
import { validatePodStatusUpdate } from './validateStatus.ts'
import { validateEphemeralUpdate, validatePodUpdate } from './validateUpdate.ts'
import { podWarnings } from './warnings.ts'

const keptMetadata = ['deletionTimestamp', 'deletionGracePeriodSeconds', 'ownerReferences'] as const
const status = statusStrategy<Pod>({ keepMetadata: keptMetadata, validateUpdate: ({ obj, old, path }) => validatePodStatusUpdate(obj, old, path) })

export const pod = defineKind<Pod>({
  group: '',
  kind: 'Pod',
  columns: podColumns,
  selectableFields: {
    'spec.nodeName': (obj) => obj.spec?.nodeName ?? '',
    'spec.restartPolicy': (obj) => obj.spec?.restartPolicy ?? '',
    'spec.schedulerName': (obj) => obj.spec?.schedulerName ?? '',
    'spec.serviceAccountName': (obj) => obj.spec?.serviceAccountName ?? '',
    'spec.hostNetwork': (obj) => String(obj.spec?.hostNetwork ?? false),
    'status.phase': (obj) => obj.status?.phase ?? '',
    'status.podIP': (obj) => obj.status?.podIP || obj.status?.podIPs?.[0]?.ip || '',
    'status.podIPs': (obj) => obj.status?.podIPs?.map(({ ip }) => ip).join(',') ?? obj.status?.podIP ?? '',
    'status.nominatedNodeName': (obj) => obj.status?.nominatedNodeName ?? '',
  },
  // The kubelets watch the pods of their nodes.
  triggerFields: ['spec.nodeName'],
  defaults: setPodDefaults,
  prepareForCreate({ obj, context }) {
    dropDisabledFields(obj.spec, context)
    obj.status = { phase: 'Pending', qosClass: qosClass(obj) }
    if (obj.spec.schedulingGates?.length) {
      obj.status.conditions = [
        { type: 'PodScheduled', status: 'False', reason: 'SchedulingGated', message: 'Scheduling is blocked due to non-empty scheduling gates' },
      ]
    }
    mergeMatchLabelKeys(obj)
    takeOverAppArmor(obj, context.warn)
  },
  prepareForUpdate(input) {
    keepStatus(input)
    dropDisabledFields(input.obj.spec, input.context, input.old.spec)
  },
  validate: ({ obj, path }) => [...podFaults(obj, undefined, path), ...createFaults(obj, path)],
  validateUpdate: ({ obj, old, path }) => [...podFaults(obj, old, path), ...validatePodUpdate(obj, old, path)],
  warnings: ({ obj }, old) => podWarnings(obj, old),
  status: {
    ...status,
    prepareForUpdate(input) {
      status.prepareForUpdate?.(input)
      const { obj, old } = input
      obj.status ??= {}
      dropDisabledStatusFields(obj, old)
      obj.status.qosClass ||= old.status?.qosClass
      const observed = old.status?.observedGeneration
      if (observed && !obj.status.observedGeneration) obj.status.observedGeneration = observed
      if (obj.status.podIP && !obj.status.podIPs?.length) obj.status.podIPs = [{ ip: obj.status.podIP }]
    },
  },
  subresources: {
    // Scheduling a pod does not change its generation.
    binding: { generation: false },
    ephemeralcontainers: {
      prepareForUpdate(input) {
        const { ephemeralContainers } = input.obj.spec
        restoreAllBut(input, { ...deepCopy<PodSpec>(input.old.spec), ephemeralContainers })
      },
      validateUpdate: ({ obj, old, path }) => [...validatePodSpec(obj.spec, path.child('spec')), ...validateEphemeralUpdate(obj, old, path)],
    },
    resize: {
      prepareForUpdate: keepOnlyResize,
      validateUpdate: ({ obj, old, path }) => [...validatePodSpec(obj.spec, path.child('spec')), ...validatePodResize(obj, old, path)],
    },
  },
  deletion: {
    gracePeriodSeconds(obj, requested) {
      const scheduled = Boolean(obj.spec.nodeName) && obj.status?.phase !== 'Failed' && obj.status?.phase !== 'Succeeded'
      if (!scheduled) return 0
      const seconds = requested ?? obj.spec.terminationGracePeriodSeconds ?? 0
      return seconds < 0 ? 1 : seconds
    },
  },
})

/** What templates need not keep. */
function podFaults(obj: Pod, old: Frozen<Pod> | undefined, path: FieldPath): FieldError[] {
  const spec = path.child('spec')
  const tokens = (obj.spec.volumes ?? []).flatMap(({ projected }, i) =>
    (projected?.sources ?? []).flatMap(({ serviceAccountToken }, j) =>
      serviceAccountToken && !obj.spec.serviceAccountName
        ? [
            fieldError.forbidden(
              spec.child('volumes').index(i).child('projected', 'sources').index(j).child('serviceAccountToken'),
              'must not be specified when serviceAccountName is not set',
            ),
          ]
        : [],
    ),
  )
  return [
    ...annotationFaults(obj, old, path.child('metadata', 'annotations')),
    ...validatePodSpec(obj.spec, spec),
    ...tokens,
    ...validateImages(obj.spec, spec),
  ]
}

/** What only a pod that is being made may not have. */
function createFaults(obj: Pod, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  const spec = path.child('spec')
  if (obj.spec.ephemeralContainers?.length) errors.push(fieldError.forbidden(spec.child('ephemeralContainers'), 'cannot be set on create'))
  if (obj.spec.nodeName && obj.spec.schedulingGates?.length)
    errors.push(fieldError.forbidden(spec.child('nodeName'), 'cannot be set until all schedulingGates have been cleared'))
  return [...errors, ...profileMismatches(obj, path)]
}

/** Labels that match*Keys name are merged into the selectors at creation: later changes of labels must not move the constraint. */
function mergeMatchLabelKeys(obj: Pod): void {
  const labels = obj.metadata.labels ?? {}
  const merge = (
    term: { labelSelector?: NonNullable<PodSpec['topologySpreadConstraints']>[number]['labelSelector'] },
    keys: readonly string[] | undefined,
    operator: string,
  ) => {
    for (const key of keys ?? []) {
      const value = labels[key]
      if (value === undefined || !term.labelSelector) continue
      term.labelSelector.matchExpressions = [...(term.labelSelector.matchExpressions ?? []), { key, operator, values: [value] }]
    }
  }
  for (const kind of ['podAffinity', 'podAntiAffinity'] as const) {
    const affinity = obj.spec.affinity?.[kind]
    const terms = [
      ...(affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
      ...(affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map((preferred) => preferred.podAffinityTerm),
    ]
    for (const term of terms) {
      merge(term, term.matchLabelKeys, 'In')
      merge(term, term.mismatchLabelKeys, 'NotIn')
    }
  }
  for (const constraint of obj.spec.topologySpreadConstraints ?? []) merge(constraint, constraint.matchLabelKeys, 'In')
}

/** Everything as it was but the given spec. */
function restoreAllBut({ obj, old }: Pick<UpdateInput<Pod>, 'obj' | 'old'>, spec: PodSpec): void {
  keepFields(obj, old, ['status'])
  const metadata = obj.metadata as Record<string, unknown>
  for (const field of ['deletionTimestamp', 'deletionGracePeriodSeconds', ...resetMetadata] as const) {
    if (old.metadata[field] === undefined) delete metadata[field]
    else metadata[field] = old.metadata[field]
  }
  if (spec.ephemeralContainers === undefined) delete spec.ephemeralContainers
  obj.spec = spec
}

function keepOnlyResize(input: UpdateInput<Pod>): void {
  const { obj, old } = input
  const same = (list: 'containers' | 'initContainers') => {
    const [now, before] = [obj.spec[list] ?? [], old.spec[list] ?? []]
    return now.length === before.length && now.every((container, i) => container.name === before[i]?.name)
  }
  // Added, removed or renamed containers are left in place for validation to refuse.
  if (!same('containers') || !same('initContainers')) return
  const spec = deepCopy<PodSpec>(old.spec)
  for (const list of ['containers', 'initContainers'] as const) {
    for (const [i, container] of (spec[list] ?? []).entries()) takeResources(container, obj.spec[list]?.[i])
  }
  if (obj.spec.resources) spec.resources = obj.spec.resources
  else delete spec.resources
  restoreAllBut(input, spec)
}

function takeResources(target: Container, from: Container | undefined): void {
  target.resources = from?.resources ?? {}
  if (from?.resizePolicy) target.resizePolicy = from.resizePolicy
  else delete target.resizePolicy
}
