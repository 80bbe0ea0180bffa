/**
 * Pods get the tolerations of their namespace, and have none that it does not allow (L3). Off by default.
 * Upstream: plugin/pkg/admission/podtolerationrestriction.
 */
import type { Namespace, Pod, Toleration } from '#api/gen/types/core.v1'
import { qosClass } from '#api/helpers/podResources'
import { areAllowed, mergeTolerations } from '#api/helpers/tolerations'
import type { Frozen } from '#api/machinery/meta'
import { notFound, StatusError } from '#api/machinery/status'
import { deepCopy } from '#base/frozen'
import type { AdmissionAttributes, AdmissionPlugin, ObjectReader } from '../admission.ts'
import { isResource, objectOf } from '../attributes.ts'

export interface TolerationSettings {
  /** For namespaces without an annotation. */
  readonly default: readonly Frozen<Toleration>[]
  readonly whitelist: readonly Frozen<Toleration>[]
}

const namespaces = { group: '', resource: 'namespaces' }
const defaultsAnnotation = 'scheduler.alpha.kubernetes.io/defaultTolerations'
const allowedAnnotation = 'scheduler.alpha.kubernetes.io/tolerationsWhitelist'
/** What takes memory by request may stay when memory is short. */
const memoryPressure = { key: 'node.kubernetes.io/memory-pressure', operator: 'Exists', effect: 'NoSchedule' }

export function podTolerationRestriction(reader: ObjectReader, settings: TolerationSettings): AdmissionPlugin {
  const ofNamespace = ({ namespace: name }: AdmissionAttributes, annotation: string) => {
    const namespace = reader.get<Namespace>(namespaces, '', name)
    if (!namespace) throw notFound(namespaces, name)
    return tolerationsIn(namespace.metadata.annotations?.[annotation])
  }
  const check = (attributes: AdmissionAttributes) => {
    const { tolerations = [] } = objectOf<Pod>(attributes).spec
    const allowed = ofNamespace(attributes, allowedAnnotation) ?? settings.whitelist
    if (areAllowed(tolerations, allowed)) return
    throw new StatusError('InternalError', 'pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist')
  }
  return {
    name: 'PodTolerationRestriction',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
    admit(attributes) {
      if (!isResource(attributes, '', 'pods')) return
      if (attributes.operation === 'CREATE') {
        const pod = objectOf<Pod>(attributes)
        const defaults = ofNamespace(attributes, defaultsAnnotation) ?? settings.default
        const extra = qosClass(pod) === 'BestEffort' ? [] : [memoryPressure]
        const merged = mergeTolerations(mergeTolerations(defaults, pod.spec.tolerations), extra)
        if (merged.length > 0) pod.spec.tolerations = deepCopy<Toleration[]>(merged)
      }
      check(attributes)
    },
    validate(attributes) {
      if (isResource(attributes, '', 'pods')) check(attributes)
    },
  }
}

function tolerationsIn(annotation: string | undefined): readonly Toleration[] | undefined {
  if (!annotation) return undefined
  try {
    return (JSON.parse(annotation) as Toleration[] | null) ?? []
  } catch (error) {
    throw new StatusError('InternalError', (error as Error).message)
  }
}
