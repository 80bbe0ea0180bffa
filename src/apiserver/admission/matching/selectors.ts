/**
 * Matches objects by the selectors of a webhook or policy (L3): by labels of their namespace and their own.
 * Upstream: apiserver/pkg/admission/plugin/webhook/predicates/{namespace,object} (v1.36).
 */
import type { LabelSelector } from '#api/gen/types/meta.v1'
import { everything, type LabelMap, type Selector, selectorOf } from '#api/machinery/labelSelector'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { notFound, type StatusError } from '#api/machinery/status'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionAttributes } from '../admission.ts'

export const namespaces = { group: '', resource: 'namespaces' }

export interface Selectors {
  readonly namespace: Selector
  readonly object: Selector
}

/** An absent selector matches everything. */
export function selectorsOf(given: {
  readonly namespaceSelector?: Frozen<LabelSelector> | undefined
  readonly objectSelector?: Frozen<LabelSelector> | undefined
}): Selectors {
  const compile = (selector: Frozen<LabelSelector> | undefined) => (selector ? selectorOf(selector) : everything)
  return { namespace: compile(given.namespaceSelector), object: compile(given.objectSelector) }
}

/** Whether a selector matches, or the refusal for a missing namespace. It is a value, because it counts only if the rules match, too. */
export type Selected = boolean | StatusError

/** The attributes that selectors match, with the object in its current state. */
export interface Selectable extends Pick<AdmissionAttributes, 'resource' | 'subresource' | 'operation' | 'oldObject'> {
  readonly object?: Frozen<KubeObject> | undefined
}

/** @param namespace the result of requestNamespace */
export function select(selectors: Selectors, subject: Selectable, namespace: string, reader: ObjectReader): Selected {
  const inNamespace = selectNamespace(selectors.namespace, subject, namespace, reader)
  if (inNamespace === false) return false
  if (!selectors.object.isEmpty && !hasLabels(selectors.object, subject.object) && !hasLabels(selectors.object, subject.oldObject)) return false
  return inNamespace
}

function selectNamespace(selector: Selector, subject: Selectable, namespace: string, reader: ObjectReader): Selected {
  const { resource, subresource, operation, object } = subject
  const isNamespace = resource.resource === 'namespaces'
  // Cluster-scoped objects are never exempt.
  if (selector.isEmpty || (namespace === '' && !isNamespace)) return true
  if (isNamespace && subresource === '' && (operation === 'CREATE' || operation === 'UPDATE')) return selector.matches(labelsOf(object))
  const found = reader.get<KubeObject>(namespaces, '', namespace)
  return found ? selector.matches(found.metadata.labels) : notFound(namespaces, namespace)
}

function hasLabels(selector: Selector, object: Frozen<KubeObject> | undefined): boolean {
  return object?.metadata !== undefined && selector.matches(labelsOf(object))
}

function labelsOf(object: Frozen<KubeObject> | undefined): LabelMap {
  return object?.metadata?.labels ?? {}
}
