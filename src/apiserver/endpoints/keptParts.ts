/**
 * The parts of an object that a write does not change (L3): those of the cached object, which are frozen, decoded and defaulted already. A patch does
 * not name them, or an in-process caller sends the same references back. They are set aside while the rest is copied, patched and decoded.
 */
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isObject, type JsonObject, setOwn } from '#api/machinery/objects'
import { keyFor } from '../registry/storedResource.ts'
import type { Scope } from './scope.ts'

/** Members that every write may change. */
const written: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata', 'status'])

/** The metadata is copied, since the registry changes it, but it is not decoded again. */
const metadataOnly: ReadonlySet<string> = new Set(['metadata'])

export class KeptParts {
  /** The object without the parts that are set aside. */
  readonly rest: JsonObject
  /** Fields of the rest that the write does not change. */
  readonly decoded: ReadonlySet<string> | undefined
  readonly #whole: JsonObject
  readonly #members: ReadonlySet<string>
  readonly #managedFields: unknown

  constructor(whole: JsonObject, members: ReadonlySet<string>, keepsManagers: boolean, keepsMetadata = false) {
    this.decoded = keepsMetadata ? metadataOnly : undefined
    this.#whole = whole
    this.#members = members
    this.#managedFields = keepsManagers ? managedFieldsOf(whole) : undefined
    this.rest = {}
    for (const field of Object.keys(whole)) if (!members.has(field)) setOwn(this.rest, field, whole[field])
    if (this.#managedFields === undefined) return
    const { managedFields: _kept, ...metadata } = whole.metadata as JsonObject
    this.rest.metadata = metadata
  }

  /** Joins the object made of the rest with the parts that were set aside, in the original order. */
  joined(object: KubeObject): KubeObject {
    const made = object as unknown as JsonObject
    if (this.#managedFields !== undefined) (made.metadata as JsonObject).managedFields = this.#managedFields
    if (this.#members.size === 0) return object
    const result: JsonObject = {}
    for (const field of Object.keys(this.#whole)) {
      if (this.#members.has(field)) setOwn(result, field, this.#whole[field])
      else if (made[field] !== undefined) setOwn(result, field, made[field])
    }
    for (const field of Object.keys(made)) if (!Object.hasOwn(result, field)) setOwn(result, field, made[field])
    return result as unknown as KubeObject
  }
}

/** The parts that a JSON patch does not name. A patch with directives keeps none, since these may name any field. */
export function keptByPatch(scope: Scope, current: Frozen<KubeObject>, patch: unknown): KeptParts | undefined {
  if (!isObject(patch) || Object.keys(patch).some((field) => field.startsWith('$'))) return undefined
  const whole = current as unknown as JsonObject
  const { metadata } = patch
  const keepsManagers = metadata === undefined || (isObject(metadata) && !Object.keys(metadata).some(namesManagers))
  return new KeptParts(
    whole,
    membersKept(scope, whole, (field) => !Object.hasOwn(patch, field)),
    keepsManagers,
    metadata === undefined && !scope.served.custom,
  )
}

function namesManagers(field: string): boolean {
  return field === 'managedFields' || field.startsWith('$')
}

/** The parts of an in-process caller's value that are the cached object's own references. */
export function keptByCaller(scope: Scope, value: unknown): KeptParts | undefined {
  const { info, served } = scope
  const current = served.stored.cache.get(keyFor(served, info.namespace, info.name))?.view(served.view).object as unknown as JsonObject | undefined
  if (!isObject(value) || !current) return undefined
  const keepsManagers = managedFieldsOf(value) === managedFieldsOf(current)
  return new KeptParts(
    value,
    membersKept(scope, value, (field) => value[field] === current[field]),
    keepsManagers,
    value.metadata === current.metadata && !served.custom,
  )
}

/**
 * The status endpoint writes nothing else, whatever else it is sent. What custom resources are is decided when they are decoded, and what some kinds'
 * defaults make of the spec when these are filled in.
 */
function membersKept({ info, served }: Scope, whole: JsonObject, isKept: (field: string) => boolean): ReadonlySet<string> {
  const members = new Set<string>()
  if (info.subresource !== 'status' || served.custom || served.stored.strategy.defaultsReadSpec) return members
  for (const field of Object.keys(whole)) if (!written.has(field) && isObject(whole[field]) && isKept(field)) members.add(field)
  return members
}

function managedFieldsOf({ metadata }: JsonObject): unknown {
  return isObject(metadata) ? metadata.managedFields : undefined
}
