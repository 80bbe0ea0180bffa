/** A pod of a runtime class pays the class's overhead and goes where the class runs (L3). Upstream: plugin/pkg/admission/runtimeclass. */
import type { Pod, Toleration } from '#api/gen/types/core.v1'
import type { RuntimeClass } from '#api/gen/types/node.v1'
import { mergeTolerations } from '#api/helpers/tolerations'
import type { Frozen } from '#api/machinery/meta'
import { compareQuantities } from '#api/machinery/quantity'
import { deepCopy } from '#base/frozen'
import type { AdmissionAttributes, AdmissionPlugin, ObjectReader } from '../admission.ts'
import { isResource, objectOf, refuse } from '../attributes.ts'

const mismatch = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"

export function runtimeClass(reader: ObjectReader): AdmissionPlugin {
  return {
    name: 'RuntimeClass',
    handles: (operation) => operation === 'CREATE',
    admit(attributes) {
      if (!isResource(attributes, '', 'pods')) return
      const found = classOf(attributes, reader)
      if (!found) return
      setOverhead(attributes, found)
      setScheduling(attributes, found)
    },
    validate(attributes) {
      if (!isResource(attributes, '', 'pods')) return
      const found = classOf(attributes, reader)
      const { overhead } = objectOf<Pod>(attributes).spec
      if (found?.overhead) {
        if (!sameAmounts(found.overhead.podFixed, overhead)) throw refuse(attributes, mismatch)
      } else if (overhead) throw refuse(attributes, 'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead')
    },
  }
}

function classOf(attributes: AdmissionAttributes, reader: ObjectReader): Frozen<RuntimeClass> | undefined {
  const { runtimeClassName } = objectOf<Pod>(attributes).spec
  if (runtimeClassName === undefined) return undefined
  const found = reader.get<RuntimeClass>({ group: 'node.k8s.io', resource: 'runtimeclasses' }, '', runtimeClassName)
  if (!found) throw refuse(attributes, `pod rejected: RuntimeClass "${runtimeClassName}" not found`)
  return found
}

function setOverhead(attributes: AdmissionAttributes, { overhead }: Frozen<RuntimeClass>): void {
  if (!overhead) return
  const { spec } = objectOf<Pod>(attributes)
  if (spec.overhead && !sameAmounts(overhead.podFixed, spec.overhead)) throw refuse(attributes, mismatch)
  if (overhead.podFixed) spec.overhead = { ...overhead.podFixed }
}

function setScheduling(attributes: AdmissionAttributes, { scheduling }: Frozen<RuntimeClass>): void {
  if (!scheduling) return
  const { spec } = objectOf<Pod>(attributes)
  for (const [key, value] of Object.entries(scheduling.nodeSelector ?? {})) {
    const own = spec.nodeSelector?.[key]
    if (own === undefined || own === value) continue
    throw refuse(attributes, `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value}; pod.spec.nodeSelector[${key}] = ${own}`)
  }
  if (spec.nodeSelector || scheduling.nodeSelector) spec.nodeSelector = { ...spec.nodeSelector, ...scheduling.nodeSelector }
  const tolerations = mergeTolerations(spec.tolerations, scheduling.tolerations)
  if (tolerations.length > 0) spec.tolerations = deepCopy<Toleration[]>(tolerations)
}

type Amounts = Readonly<Record<string, string>>

function sameAmounts(a: Amounts = {}, b: Amounts = {}): boolean {
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every((name) => b[name] !== undefined && compareQuantities(a[name] ?? '0', b[name]) === 0)
}
