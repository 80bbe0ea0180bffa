/**
 * The faults for which apply refuses a configuration (L1): fields that the schema does not know, and list items with equal or missing keys.
 * Live objects may hold such items, because other writes are not checked for them.
 * Upstream: structured-merge-diff/v6/typed/validate.go and helpers.go (v1.36).
 */
import type { DeepReadonly } from '#base/frozen'
import type { KubeObject } from '../machinery/meta.ts'
import { isObject, type JsonObject } from '../machinery/objects.ts'
import { StatusError } from '../machinery/status.ts'
import type { Schema } from '../schema/schema.ts'
import { printElement } from './fieldSet.ts'
import { itemElement, memberSchema, shapeOf } from './typed.ts'

interface Configuration {
  readonly applied: DeepReadonly<KubeObject>
  readonly schema: Schema | undefined
  readonly unknownFields?: readonly string[] | undefined
}

/** @throws StatusError when the configuration has fields that the schema does not know, or list items with equal or missing keys */
export function refuseFaults({ applied, schema, unknownFields = [] }: Configuration): void {
  const faults = [...unknownFields.map((path) => `.${path}: field not declared in schema`), ...configurationFaults(applied, schema)]
  if (faults.length === 0) return
  const { namespace, name = '' } = applied.metadata
  const text = faults.length === 1 ? faults[0] : `errors:\n${faults.map((fault) => `  ${fault}`).join('\n')}`
  throw new StatusError(
    '',
    `failed to create typed patch object (${namespace ? `${namespace}/` : '/'}${name}; ${applied.apiVersion}, Kind=${applied.kind}): ${text}`,
  )
}

/** Each fault as `.path: what is wrong`, in upstream's words. */
export function configurationFaults(value: unknown, schema: Schema | undefined): string[] {
  const faults: string[] = []
  walk(value, schema, '', faults)
  return faults
}

function walk(value: unknown, schema: Schema | undefined, path: string, faults: string[]): void {
  const shape = shapeOf(value, schema)
  if (shape === 'members') {
    const object = value as JsonObject
    for (const name of Object.keys(object)) walk(object[name], memberSchema(schema, name), `${path}.${name}`, faults)
  } else if (shape === 'items') {
    walkItems(value as unknown[], schema as Schema, path, faults)
  }
}

function walkItems(list: readonly unknown[], schema: Schema, path: string, faults: string[]): void {
  const seen = new Set<string>()
  for (const [index, item] of list.entries()) {
    const element = itemElement(item, index, schema)
    const nameless = namelessFault(item, element, schema)
    // An item without a key has no path for the faults below it.
    if (nameless !== undefined) {
      faults.push(`${path}: element ${index}: ${nameless}`)
      return
    }
    const step = printElement(element)
    if (seen.has(element)) faults.push(`${path}: duplicate entries for key ${step}`)
    seen.add(element)
    walk(item, schema.element, path + step, faults)
  }
}

function namelessFault(item: unknown, element: string, schema: Schema): string | undefined {
  if (schema.listType === 'set') {
    if (item === null) return "associative list without keys has an element that's an explicit null"
    if (Array.isArray(item)) return 'not supported: associative list with lists as elements'
    return isObject(item) ? "associative list without keys has an element that's a map type" : undefined
  }
  if (item === null) return 'associative list with keys may not have a null element'
  if (!isObject(item)) return 'associative list with keys may not have non-map elements'
  if (!element.startsWith('i:')) return undefined
  const keys = (schema.listMapKeys ?? []).map((name) => JSON.stringify(name)).join(' ')
  return `associative list with keys has an element that omits all key fields [${keys}] (and doesn't have default values for any key fields)`
}
