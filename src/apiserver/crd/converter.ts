/**
 * Moves custom resources between the versions of their definition (L3). A definition with conversion None only changes the apiVersion; one
 * with a webhook calls it for many objects at once.
 * Upstream: apiextensions-apiserver/pkg/apiserver/conversion (converter.go, nop_converter.go).
 */
import { type Frozen, groupVersion, type KubeObject } from '#api/machinery/meta'
import { internalError } from '#api/machinery/status'
import type { OtherVersions } from '#api/managedFields/versions'
import type { Schema } from '#api/schema/schema'
import { pruneUnknownFields } from '#api/schema/structural'
import { normalizeStored } from '#api/schema/structuralDecode'
import { type DeepReadonly, deepCopy } from '#base/frozen'
import type { Cancellation } from '../core/cancellation.ts'
import type { VersionView } from '../core/watch/cacheEntry.ts'
import type { ForeignConversion } from '../registry/convertedVersions.ts'

/** Asks a webhook; the answer has the objects in the same order. */
export type WebhookConversion = (objects: readonly Frozen<KubeObject>[], apiVersion: string, cancellation?: Cancellation) => Promise<readonly KubeObject[]>

export class Converter {
  readonly #group: string
  /** Schemas of all versions of the definition, by apiVersion. */
  readonly #schemas: ReadonlyMap<string, Schema>
  readonly #webhook: WebhookConversion | undefined
  /** Objects that were just decoded with the current schema: they are not checked again. */
  readonly #fresh = new WeakSet<object>()

  constructor(group: string, schemas: ReadonlyMap<string, Schema>, webhook: WebhookConversion | undefined) {
    this.#group = group
    this.#schemas = schemas
    this.#webhook = webhook
  }

  /** The view of a version: stored objects of any version, by the current schema. */
  view(version: string): VersionView {
    const apiVersion = groupVersion({ group: this.#group, version })
    const convert = (object: Frozen<KubeObject>) => {
      if (object.apiVersion === apiVersion) return this.#normal(object)
      if (this.#webhook) throw internalError(new Error(`${object.apiVersion} ${object.kind} has not been converted to ${apiVersion}`))
      return this.#renamed(deepCopy<KubeObject>(this.#normal(object)), apiVersion)
    }
    if (!this.#webhook) return { apiVersion, convert }
    return { apiVersion, convert, convertAll: (objects, cancellation) => this.#convertAll(objects, apiVersion, cancellation) }
  }

  /**
   * For field ownership, where versions differ in their name alone; undefined where a webhook converts. Fields that another version does not have are kept:
   * objects come back from there. A version that was removed from the definition owns nothing.
   */
  get renamed(): OtherVersions | undefined {
    if (this.#webhook) return undefined
    return (apiVersion) => {
      const schema = this.#schemas.get(apiVersion)
      const show = (object: DeepReadonly<KubeObject>) => ({ ...object, apiVersion }) as KubeObject
      return schema && { schema, show, back: (object) => object as KubeObject }
    }
  }

  /** The same through the webhook; undefined where there is none. */
  get foreign(): ForeignConversion | undefined {
    const webhook = this.#webhook
    if (!webhook) return undefined
    // Conversion does not apply defaults: a field that an apply removes must not return as another version's default.
    const convert = async (object: DeepReadonly<KubeObject>, apiVersion: string) => {
      const [converted] = await webhook([object], apiVersion)
      return this.#renamed(converted as KubeObject, apiVersion)
    }
    return { schemas: this.#schemas, convert }
  }

  /** Converts from a served version to the stored one. Takes ownership of the object. */
  toStored(object: KubeObject, storageVersion: string): KubeObject | Promise<KubeObject> {
    const apiVersion = groupVersion({ group: this.#group, version: storageVersion })
    if (object.apiVersion === apiVersion) {
      this.#fresh.add(object)
      return object
    }
    if (!this.#webhook) return this.#renamed(object, apiVersion)
    return this.#convertAll([object as Frozen<KubeObject>], apiVersion).then(([converted]) => converted as KubeObject)
  }

  /** Returns the object itself if it conforms to its version's schema. */
  #normal(object: Frozen<KubeObject>): Frozen<KubeObject> {
    if (this.#fresh.has(object)) return object
    const copy = deepCopy<KubeObject>(object)
    return normalizeStored(copy as unknown as Record<string, unknown>, this.#schemaOf(object)) ? (copy as Frozen<KubeObject>) : object
  }

  #renamed(object: KubeObject, apiVersion: string): KubeObject {
    object.apiVersion = apiVersion
    pruneUnknownFields(object, this.#schemaOf(object))
    return object
  }

  async #convertAll(objects: readonly Frozen<KubeObject>[], apiVersion: string, cancellation?: Cancellation): Promise<readonly KubeObject[]> {
    const normal = objects.map((object) => this.#normal(object))
    const foreign = normal.filter((object) => object.apiVersion !== apiVersion)
    const converted = foreign.length === 0 ? [] : await (this.#webhook as WebhookConversion)(foreign, apiVersion, cancellation)
    let next = 0
    return normal.map((object) =>
      object.apiVersion === apiVersion ? object : this.#renamed(converted[next++] as KubeObject, apiVersion),
    ) as readonly KubeObject[]
  }

  #schemaOf({ apiVersion }: { readonly apiVersion: string }): Schema {
    const schema = this.#schemas.get(apiVersion)
    if (!schema) throw internalError(new Error(`request to convert CR from an invalid group/version: ${apiVersion}`))
    return schema
  }
}
