/**
 * The object under admission in the version that a webhook's or policy's rules name (L3), converted once per version; and the conversion back after
 * a change.
 * Upstream: admission.VersionedAttributes and the accessors of the dispatchers (v1.36).
 */
import { type Frozen, type GroupVersionKind, groupVersion, type KubeObject } from '#api/machinery/meta'
import { internalError, StatusError } from '#api/machinery/status'
import { deepCopy } from '#base/frozen'
import type { AdmissionAttributes } from '../admission.ts'

export interface VersionedObjects {
  readonly object: Frozen<KubeObject> | undefined
  readonly oldObject: Frozen<KubeObject> | undefined
}

/** For validation: every version is converted at most once. */
export class VersionedViews {
  readonly #attributes: AdmissionAttributes
  readonly #made = new Map<string, VersionedObjects>()

  constructor(attributes: AdmissionAttributes) {
    this.#attributes = attributes
  }

  /** @throws StatusError InternalError when the conversion fails */
  async of(kind: GroupVersionKind): Promise<VersionedObjects> {
    const apiVersion = groupVersion(kind)
    const known = this.#made.get(apiVersion)
    if (known) return known
    const made = await versionOf(this.#attributes, kind)
    this.#made.set(apiVersion, made)
    return made
  }
}

async function versionOf(attributes: AdmissionAttributes, kind: GroupVersionKind): Promise<VersionedObjects> {
  const { object, oldObject } = attributes
  return {
    object: object && (await shownAs(attributes, object as Frozen<KubeObject>, kind)),
    oldObject: oldObject && (await shownAs(attributes, oldObject, kind)),
  }
}

/** The object in a version of its own resource; objects that are not stored have one version only. */
export async function shownAs({ forms, cancellation }: AdmissionAttributes, object: Frozen<KubeObject>, kind: GroupVersionKind): Promise<Frozen<KubeObject>> {
  const apiVersion = groupVersion(kind)
  if (!forms || object.apiVersion === apiVersion || object.kind !== kind.kind) return object
  try {
    return await forms.show(object, apiVersion, cancellation)
  } catch (error) {
    throw error instanceof StatusError ? error : internalError(error)
  }
}

/** For those that change the object: it is in one version at a time, with all the changes so far. */
export class MutableObject {
  readonly #attributes: AdmissionAttributes
  #object: Frozen<KubeObject> | undefined
  #isDirty = false

  constructor(attributes: AdmissionAttributes) {
    this.#attributes = attributes
    this.#object = attributes.object as Frozen<KubeObject> | undefined
  }

  get current(): Frozen<KubeObject> | undefined {
    return this.#object
  }

  async as(kind: GroupVersionKind): Promise<VersionedObjects> {
    const { oldObject } = this.#attributes
    if (this.#object) this.#object = await shownAs(this.#attributes, this.#object, kind)
    return { object: this.#object, oldObject: oldObject && (await shownAs(this.#attributes, oldObject, kind)) }
  }

  /** @param object in the version that was asked for last */
  replace(object: KubeObject): void {
    this.#object = object as Frozen<KubeObject>
    this.#isDirty = true
  }

  /** Writes the changes into the object under admission, in the request's version. */
  async finish(): Promise<void> {
    const { object, kind } = this.#attributes
    if (!this.#isDirty || !object || !this.#object) return
    const changed = await shownAs(this.#attributes, this.#object, kind)
    if ((changed as unknown) === object) return
    const target = object as unknown as Record<string, unknown>
    for (const field of Object.keys(target)) delete target[field]
    // The result of a conversion may be shared, so it is copied.
    Object.assign(target, Object.isFrozen(changed) || Object.isFrozen(changed.metadata) ? deepCopy(changed) : changed)
    this.#isDirty = false
  }
}
