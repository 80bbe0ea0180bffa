/** Turns a pod's priority class into its priority, and allows one default class (L3). Upstream: plugin/pkg/admission/priority. */
import type { Pod } from '#api/gen/types/core.v1'
import type { PriorityClass } from '#api/gen/types/scheduling.v1'
import type { Frozen } from '#api/machinery/meta'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionAttributes, AdmissionPlugin } from '../admission.ts'
import { isResource, objectOf, refuse } from '../attributes.ts'

const priorityClasses = { group: 'scheduling.k8s.io', resource: 'priorityclasses' }
const defaultPreemptionPolicy = 'PreemptLowerPriority'

export function priority(reader: ObjectReader): AdmissionPlugin {
  return {
    name: 'Priority',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
    admit: (attributes) => {
      if (isResource(attributes, '', 'pods')) admitPod(attributes, reader)
    },
    validate: (attributes) => {
      if (isResource(attributes, 'scheduling.k8s.io', 'priorityclasses')) checkOnlyDefault(attributes, reader)
    },
  }
}

function admitPod(attributes: AdmissionAttributes, reader: ObjectReader): void {
  const { spec } = objectOf<Pod>(attributes)
  if (attributes.operation === 'UPDATE') {
    // On update, a pod keeps its priority even if the client leaves it out.
    const old = attributes.oldObject as Frozen<Pod> | undefined
    if (old?.spec.priority !== undefined) spec.priority ??= old.spec.priority
    if (old?.spec.preemptionPolicy !== undefined) spec.preemptionPolicy ??= old.spec.preemptionPolicy
    return
  }
  const found = spec.priorityClassName ? reader.get<PriorityClass>(priorityClasses, '', spec.priorityClassName) : defaultClass(reader)
  if (spec.priorityClassName && !found) throw refuse(attributes, `no PriorityClass with name ${spec.priorityClassName} was found`)
  if (found) spec.priorityClassName = found.metadata.name
  const computed = found?.value ?? 0
  if (spec.priority !== undefined && spec.priority !== computed) {
    const from = 'must not be provided in pod spec; priority admission controller computed'
    throw refuse(attributes, `the integer value of priority (${spec.priority}) ${from} ${computed} from the given PriorityClass name`)
  }
  spec.priority = computed
  const policy = found?.preemptionPolicy ?? defaultPreemptionPolicy
  if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== policy) {
    throw refuse(
      attributes,
      `the string value of PreemptionPolicy (${spec.preemptionPolicy}) must not be provided in pod spec; priority admission controller computed ${policy} from the given PriorityClass name`,
    )
  }
  spec.preemptionPolicy = policy
}

/** The default class. A race can leave several; the lowest counts. */
function defaultClass(reader: ObjectReader): Frozen<PriorityClass> | undefined {
  const defaults = reader.list<PriorityClass>(priorityClasses).filter((one) => one.globalDefault)
  return [...defaults].sort((a, b) => (a.value ?? 0) - (b.value ?? 0))[0]
}

function checkOnlyDefault(attributes: AdmissionAttributes, reader: ObjectReader): void {
  const wanted = objectOf<PriorityClass>(attributes)
  if (!wanted.globalDefault) return
  const other = defaultClass(reader)
  if (other && (attributes.operation === 'CREATE' || other.metadata.name !== wanted.metadata.name)) {
    throw refuse(attributes, `PriorityClass ${other.metadata.name} is already marked as default. Only one default can exist`)
  }
}
