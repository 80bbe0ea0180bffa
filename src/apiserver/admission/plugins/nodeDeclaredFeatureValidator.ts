/**
 * Refuses resizes of a pod that its kubelet does not declare to support (L3): of pod-level resources, and of init containers that are no sidecars.
 * Slices of devices that are counted as node resources belong to DRANodeAllocatableResources, which is off.
 * Upstream: plugin/pkg/admission/nodedeclaredfeatures, component-helpers/nodedeclaredfeatures/features/inplacepodresize (v1.36).
 */
import type { Node, Pod } from '#api/gen/types/core.v1'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen } from '#api/machinery/meta'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionPlugin } from '../admission.ts'
import { isResource, isSubresource, objectOf, refuse } from '../attributes.ts'

type Spec = Frozen<Pod>['spec']

/** Features that a change of a pod requires on its node, by name, in upstream's order. */
const features: readonly (readonly [string, (now: Spec, before: Spec) => boolean])[] = [
  ['InPlacePodLevelResourcesVerticalScaling', (now, before) => !semanticEqual(now.resources, before.resources)],
  [
    'InPlacePodVerticalScalingInitContainers',
    (now, before) =>
      (before.initContainers ?? []).some((one, at) => one.restartPolicy !== 'Always' && !semanticEqual(one.resources, now.initContainers?.[at]?.resources)),
  ],
]

export function nodeDeclaredFeatureValidator(reader: ObjectReader): AdmissionPlugin {
  return {
    name: 'NodeDeclaredFeatureValidator',
    handles: (operation) => operation === 'UPDATE',
    validate(attributes) {
      if (!isResource(attributes, '', 'pods') && !isSubresource(attributes, '', 'pods', 'resize')) return
      const { metadata, spec } = objectOf<Pod>(attributes) as Frozen<Pod>
      const old = attributes.oldObject as Frozen<Pod>
      if (!spec.nodeName || old.metadata.generation === metadata.generation) return
      const needed = features.filter(([, isNeeded]) => isNeeded(spec, old.spec)).map(([name]) => name)
      if (needed.length === 0) return
      const node = reader.get<Node>({ group: '', resource: 'nodes' }, '', spec.nodeName)
      if (!node) throw refuse(attributes, `node "${spec.nodeName}" not found`)
      const missing = needed.filter((name) => !node.status?.declaredFeatures?.includes(name))
      if (missing.length === 0) return
      throw refuse(attributes, `pod update requires features ${missing.join(', ')} which are not available on node "${spec.nodeName}"`)
    },
  }
}
