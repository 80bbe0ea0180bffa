/** From the query's selectors to a selection of the registry, and its numbers (L3). */
import { type FieldSelector, parseFieldSelector } from '#api/machinery/fieldSelector'
import { parseLabelSelector } from '#api/machinery/labelSelector'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { badRequest, type StatusError } from '#api/machinery/status'
import { emptyMap } from '#base/bareMap'
import type { CacheEntry } from '../core/watch/cacheEntry.ts'
import { everything, type Selection } from '../registry/selection.ts'
import type { ServedResource } from '../registry/storedResource.ts'

/** `name` is set for a watch of one object by path. @throws BadRequest for malformed selectors and fields that the kind does not know */
export function parseSelection(served: ServedResource, namespace: string, labelText: string, fieldText: string, name = ''): Selection {
  if (labelText === '' && fieldText === '' && name === '') {
    return namespace === '' ? everything : { key: namespace, namespace, exactFields: {} }
  }
  const labels = parseLabelSelector(labelText)
  const fields = parseFieldSelector(fieldText)
  const get = checkedFields(served, fields)
  const exactFields: Record<string, string> = emptyMap()
  for (const { field, operator, value } of fields.terms) if (operator === '=') exactFields[field] = value
  if (name) {
    if (!fields.isEmpty && exactFields['metadata.name'] !== name) throw badRequest("fieldSelector metadata.name doesn't match requested name")
    exactFields['metadata.name'] = name
  }
  const wantedNamespace = namespace || exactFields['metadata.namespace'] || ''
  const matchesObject = (entry: CacheEntry) =>
    (name === '' || entry.object.metadata.name === name) &&
    (labels.isEmpty || labels.matches(entry.object.metadata.labels)) &&
    (fields.isEmpty || fields.matches((field) => get(entry, field)))
  return { key: [namespace, labels, fields, name].join('\n'), namespace: wantedNamespace, matchesObject, exactFields }
}

function checkedFields(served: ServedResource, fields: FieldSelector): (entry: CacheEntry, field: string) => string {
  const { selectableFields: own, selectsNamespace = true } = served.stored.strategy
  for (const { field } of fields.terms) {
    // Kinds that list their fields have a namespace among them only where their objects have one.
    const isMetadata = field === 'metadata.name' || (field === 'metadata.namespace' && (!own || (served.namespaced && selectsNamespace)))
    if (isMetadata || (own && Object.hasOwn(own, field))) continue
    if (own) throw badRequest(`field label not supported: ${field}`)
    throw unknownField(field)
  }
  return (entry, field) => {
    const { metadata } = entry.object
    if (field === 'metadata.name') return metadata.name ?? ''
    if (field === 'metadata.namespace') return metadata.namespace ?? ''
    return own?.[field]?.(shownObject(served, entry)) ?? ''
  }
}

/** The refusal of a field that no selector of the kind may name. */
export function unknownField(field: string): StatusError {
  return badRequest(`${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`)
}

/** Fields are those of the served version. An object that a webhook has not converted yet is matched in its stored version. */
function shownObject({ view }: ServedResource, entry: CacheEntry): Frozen<KubeObject> {
  return view && (!view.convertAll || entry.hasView(view)) ? entry.view(view).object : entry.object
}

/** A whole number of the query, 0 when it is not there. @throws BadRequest in Go's words */
export function integerOf(query: URLSearchParams, name: string): number {
  const text = query.get(name) ?? ''
  return text === '' ? 0 : wholeNumber(text)
}

/** @throws BadRequest in the words of Go's strconv, unless it is a whole number of 64 bits */
export function wholeNumber(text: string): number {
  const value = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN
  if (Math.abs(value) < 2 ** 63) return value
  throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: ${Number.isNaN(value) ? 'invalid syntax' : 'value out of range'}`)
}
