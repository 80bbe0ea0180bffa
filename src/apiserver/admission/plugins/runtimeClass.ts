/** Adds a runtime class's overhead and scheduling constraints to its pods (L3). Upstream: plugin/pkg/admission/runtimeclass. */
import type { Pod, Toleration } from '#api/gen/types/core.v1'
import type { RuntimeClass } from '#api/gen/types/node.v1'
import { mergeTolerations } from '#api/helpers/tolerations'
import type { Frozen } from '#api/machinery/meta'
import { compareQuantities } from '#api/machinery/quantity'
import { ownValue } from '#base/bareMap'
import { deepCopy } from '#base/frozen'
import type { AdmissionAttributes, AdmissionPlugin } from '../admission.ts'
import { isResource, objectOf, refuse } from '../attributes.ts'
import type { Lookup } from '../lookup.ts'

const classes = { group: 'node.k8s.io', version: 'v1', resource: 'runtimeclasses', namespaced: false }
const mismatch = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"

export function runtimeClass(lookup: Lookup): AdmissionPlugin {
  const withClass = (attributes: AdmissionAttributes, go: (found: Frozen<RuntimeClass> | undefined) => void): Promise<void> | void => {
    if (!isResource(attributes, '', 'pods')) return
    const { runtimeClassName: name } = objectOf<Pod>(attributes).spec
    const cached = name === undefined ? undefined : lookup.cached<RuntimeClass>(classes, '', name)
    if (name === undefined || cached) return go(cached)
    return lookup.live<RuntimeClass>(classes, '', name).then((stored) => {
      if (!stored) throw refuse(attributes, `pod rejected: RuntimeClass "${name}" not found`)
      go(stored)
    })
  }
  return {
    name: 'RuntimeClass',
    handles: (operation) => operation === 'CREATE',
    admit: (attributes) =>
      withClass(attributes, (found) => {
        if (!found) return
        setOverhead(attributes, found)
        setScheduling(attributes, found)
      }),
    validate: (attributes) =>
      withClass(attributes, (found) => {
        const { overhead } = objectOf<Pod>(attributes).spec
        if (found?.overhead) {
          if (!sameAmounts(found.overhead.podFixed, overhead)) throw refuse(attributes, mismatch)
        } else if (overhead) throw refuse(attributes, 'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead')
      }),
  }
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
    const chosen = ownValue(spec.nodeSelector, key)
    if (chosen === undefined || chosen === value) continue
    throw refuse(attributes, `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value}; pod.spec.nodeSelector[${key}] = ${chosen}`)
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
