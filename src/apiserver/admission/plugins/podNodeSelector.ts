/**
 * Restricts pods to the nodes of their namespace (L3): its node selector is added to theirs, and the result must be allowed. Off by default.
 * Upstream: plugin/pkg/admission/podnodeselector.
 */
import type { Namespace, Pod } from '#api/gen/types/core.v1'
import { parseLabelSelector } from '#api/machinery/labelSelector'
import { forbidden, internalError, type StatusError } from '#api/machinery/status'
import { ownValue } from '#base/bareMap'
import type { AdmissionAttributes, AdmissionPlugin } from '../admission.ts'
import { isResource, objectOf, plainError } from '../attributes.ts'
import { find, type Lookup, namespaceResource } from '../lookup.ts'

/** Node selectors (`a=b,c=d`) by namespace; `clusterDefaultNodeSelector` is for namespaces without an annotation. */
export type NodeSelectors = Readonly<Record<string, string>>
type Labels = Readonly<Record<string, string>>

const annotation = 'scheduler.alpha.kubernetes.io/node-selector'

export function podNodeSelector(lookup: Lookup, selectors: NodeSelectors): AdmissionPlugin {
  const ofNamespace = async (name: string): Promise<Labels> => {
    const namespace = await find<Namespace>(lookup, namespaceResource, '', name)
    if (!namespace) throw internalError(new Error(`namespace ${name} does not exist`))
    return labelsOf(namespace.metadata.annotations?.[annotation] ?? selectors.clusterDefaultNodeSelector)
  }
  const check = (attributes: AdmissionAttributes, wanted: Labels) => {
    const chosen = objectOf<Pod>(attributes).spec.nodeSelector
    if (Object.entries(wanted).some(([key, value]) => (ownValue(chosen, key) ?? value) !== value))
      throw refusal(attributes, 'pod node label selector conflicts with its namespace node label selector')
  }
  const checkAllowed = (attributes: AdmissionAttributes) => {
    const allowed = labelsOf(ownValue(selectors, attributes.namespace))
    const own = Object.entries(objectOf<Pod>(attributes).spec.nodeSelector ?? {})
    if (Object.keys(allowed).length > 0 && own.some(([key, value]) => allowed[key] !== value))
      throw refusal(attributes, 'pod node label selector labels conflict with its namespace whitelist')
  }
  return {
    name: 'PodNodeSelector',
    handles: (operation) => operation === 'CREATE',
    async admit(attributes) {
      if (!isResource(attributes, '', 'pods')) return
      const wanted = await ofNamespace(attributes.namespace)
      check(attributes, wanted)
      const { spec } = objectOf<Pod>(attributes)
      if (spec.nodeSelector || Object.keys(wanted).length > 0) spec.nodeSelector = { ...wanted, ...spec.nodeSelector }
      checkAllowed(attributes)
    },
    async validate(attributes) {
      if (!isResource(attributes, '', 'pods')) return
      check(attributes, await ofNamespace(attributes.namespace))
      checkAllowed(attributes)
    },
  }
}

/** As upstream, the refusal has the pod's current name, which may be empty. */
function refusal(attributes: AdmissionAttributes, why: string): StatusError {
  return forbidden(attributes.resource, objectOf<Pod>(attributes).metadata.name ?? '', why)
}

/** Upstream: labels.ConvertSelectorToLabelsMap. */
function labelsOf(selector = ''): Labels {
  const pairs = selector.split(',').filter((part) => part.trim() !== '')
  return Object.fromEntries(
    pairs.map((pair): [string, string] => {
      const [key = '', value, ...more] = pair.split('=').map((part) => part.trim())
      if (value === undefined || more.length > 0) throw plainError(`invalid selector: [${selector}]`)
      parseLabelSelector(`${key}=${value}`)
      return [key, value]
    }),
  )
}
