/**
 * Adds the tolerations of the namespace to pods, and refuses those that it does not allow (L3). Off by default.
 * Upstream: plugin/pkg/admission/podtolerationrestriction.
 */
import type { Namespace, Pod, Toleration } from '#api/gen/types/core.v1'
import { qosClass } from '#api/helpers/podResources'
import { areAllowed, mergeTolerations } from '#api/helpers/tolerations'
import type { Frozen } from '#api/machinery/meta'
import { notFound } from '#api/machinery/status'
import { ownValue } from '#base/bareMap'
import { deepCopy } from '#base/frozen'
import type { AdmissionAttributes, AdmissionPlugin } from '../admission.ts'
import { isResource, objectOf, plainError } from '../attributes.ts'
import { find, type Lookup, namespaceResource } from '../lookup.ts'

export interface TolerationSettings {
  /** For namespaces without an annotation. */
  readonly default: readonly Frozen<Toleration>[]
  readonly whitelist: readonly Frozen<Toleration>[]
}

const defaultsAnnotation = 'scheduler.alpha.kubernetes.io/defaultTolerations'
const allowedAnnotation = 'scheduler.alpha.kubernetes.io/tolerationsWhitelist'
/** Added to pods with memory requests, as upstream. */
const memoryPressure = { key: 'node.kubernetes.io/memory-pressure', operator: 'Exists', effect: 'NoSchedule' }

export function podTolerationRestriction(lookup: Lookup, settings: TolerationSettings): AdmissionPlugin {
  const ofNamespace = async ({ namespace: name }: AdmissionAttributes, annotation: string) => {
    const namespace = await find<Namespace>(lookup, namespaceResource, '', name)
    if (!namespace) throw notFound(namespaceResource, name)
    return tolerationsIn(ownValue(namespace.metadata.annotations, annotation))
  }
  const check = async (attributes: AdmissionAttributes) => {
    const { tolerations = [] } = objectOf<Pod>(attributes).spec
    if (tolerations.length === 0) return
    const allowed = (await ofNamespace(attributes, allowedAnnotation)) ?? settings.whitelist
    if (areAllowed(tolerations, allowed)) return
    throw plainError('pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist')
  }
  return {
    name: 'PodTolerationRestriction',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
    async admit(attributes) {
      if (!isResource(attributes, '', 'pods')) return
      const { spec } = objectOf<Pod>(attributes)
      const defaults = attributes.operation === 'CREATE' ? ((await ofNamespace(attributes, defaultsAnnotation)) ?? settings.default) : []
      const extra = qosClass(objectOf<Pod>(attributes)) === 'BestEffort' ? defaults : [...defaults, memoryPressure]
      if (extra.length > 0) spec.tolerations = deepCopy<Toleration[]>(mergeTolerations(spec.tolerations, extra))
      await check(attributes)
    },
    async validate(attributes) {
      if (isResource(attributes, '', 'pods')) await check(attributes)
    },
  }
}

/** Undefined: no annotation, so the settings apply. An empty annotation means no tolerations. */
function tolerationsIn(annotation: string | undefined): readonly Toleration[] | undefined {
  if (annotation === undefined) return undefined
  if (annotation === '') return []
  try {
    return (JSON.parse(annotation) as Toleration[] | null) ?? []
  } catch (error) {
    throw plainError((error as Error).message)
  }
}
