/** Bodies in the audit log (L3): JSON, without managed fields if the policy omits them; stored objects reuse their encoded bytes. */

import { stringifyExactly } from '#api/machinery/exactIntegers'
import { parseExactly } from '#api/machinery/json'
import type { KubeObject } from '#api/machinery/meta'
import { parseYaml } from '#api/machinery/yaml'
import type { Answer } from '../core/answer.ts'
import { listValue } from '../core/encode.ts'
import type { RequestBody } from '../core/request.ts'

export function objectText(object: object, omitManagedFields: boolean): string {
  return stringifyExactly(omitManagedFields ? withoutManagedFields(object) : object)
}

/** The patch as it was sent; a YAML patch as JSON. Undefined: there is none, or it is no JSON. */
export function patchText(body: RequestBody): string | undefined {
  if (body.type === 'value') return body.value === undefined ? undefined : stringifyExactly(body.value)
  const text = body.bytes.toString('utf8')
  return parsed(() => stringifyExactly(parseExactly(text))) ?? parsed(() => stringifyExactly(parseYaml(text)))
}

function parsed(read: () => string): string | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** Undefined: the answer is no object. */
export function responseText(answer: Answer, omitManagedFields: boolean): string | undefined {
  switch (answer.type) {
    case 'object':
      return omitManagedFields ? objectText(answer.object.object, true) : Buffer.from(answer.object.bytes).toString('utf8')
    case 'list':
      return objectText(listValue(answer) as object, omitManagedFields)
    case 'value':
      return typeof answer.value === 'object' && answer.value !== null ? objectText(answer.value, omitManagedFields) : undefined
    default:
      return undefined
  }
}

interface Listing {
  readonly items?: readonly KubeObject[]
  readonly rows?: readonly { readonly object?: KubeObject }[]
}

function withoutManagedFields(object: object): object {
  const { items, rows } = object as Listing
  if (items) return { ...object, items: items.map(withoutOwn) }
  if (rows) return { ...object, rows: rows.map((row) => (row.object ? { ...row, object: withoutOwn(row.object) } : row)) }
  return withoutOwn(object as KubeObject)
}

function withoutOwn(object: KubeObject): object {
  if (!object.metadata?.managedFields) return object
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}
